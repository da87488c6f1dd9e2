package access

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/staff"
	"dropbell/views/ui"
)

func shopsText(ctx context.Context, shops []int64) string {
	if len(shops) == 0 {
		return ui.T(ctx, "staff.all_shops")
	}
	words := make([]string, len(shops))
	for i, s := range shops {
		words[i] = strconv.FormatInt(s, 10)
	}
	return strings.Join(words, ", ")
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
