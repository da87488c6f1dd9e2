package access

import (
	"context"
	"slices"
	"strings"

	"dropbell/domain/staff"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// shopsText names the shops of a member, with their numbers.
func (p Staff) shopsText(ctx context.Context, shops []int64) string {
	if len(shops) == 0 {
		return ui.T(ctx, "staff.all_shops")
	}
	words := make([]string, len(shops))
	for i, number := range shops {
		words[i] = "#" + parts.ID(number)
		for _, s := range p.Shops {
			if s.Number == number {
				words[i] = ui.Bracketed(ctx, s.Name, words[i])
			}
		}
	}
	return strings.Join(words, ui.T(ctx, "ui.list_join"))
}

// shops are the shops to tick. A shop of the member that the list does not have stays ticked.
func (p MemberForm) shops(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "shops", Label: ui.T(ctx, "field.shops"), Help: ui.T(ctx, "help.shops"), Error: ui.ErrorOf(ctx, p.Errors, "shops")}
	for _, s := range p.Shops {
		c.Options = append(c.Options, ui.Option{Value: parts.ID(s.Number), Label: s.Name + " (#" + parts.ID(s.Number) + ")"})
	}
	for _, number := range strings.FieldsFunc(p.Values["shops"], func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.ContainsFunc(c.Options, func(o ui.Option) bool { return o.Value == number }) {
			c.Options = append(c.Options, ui.Option{Value: number, Label: "#" + number})
		}
		c.Values = append(c.Values, number)
	}
	return c
}

func (p MemberForm) title(ctx context.Context) string {
	if p.ID == 0 {
		return ui.T(ctx, "staff.new")
	}
	return p.Name
}

// submit returns the label of the form's button.
func (p MemberForm) submit(ctx context.Context) string {
	if p.ID == 0 && !p.PasswordsOff {
		return ui.T(ctx, "staff.invite")
	}
	if p.ID == 0 {
		return ui.T(ctx, "staff.new")
	}
	return ui.T(ctx, "ui.save")
}

func (p MemberForm) roles(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "role", Label: ui.T(ctx, "field.role"), Value: p.Values["role"], Error: ui.ErrorOf(ctx, p.Errors, "role")}
	for _, r := range staff.Roles() {
		c.Options = append(c.Options, ui.Option{Value: string(r), Label: ui.T(ctx, "role."+string(r)), Help: ui.T(ctx, "role."+string(r)+".help")})
	}
	return c
}

func (p KeyForm) has(s staff.Scope) bool { return slices.Contains(p.Scopes, s) }

func deviceIcon(agent string) string {
	if strings.Contains(agent, "Mobile") || strings.Contains(agent, "Android") || strings.Contains(agent, "iPhone") {
		return "device-mobile"
	}
	return "app-window"
}
