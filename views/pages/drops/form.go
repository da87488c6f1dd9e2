package drops

import (
	"context"

	"dropbell/domain/field"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

func (p TemplateForm) err(ctx context.Context, name string) string {
	return ui.ErrorOf(ctx, p.Errors, name)
}

// advanced reports whether the section of advanced fields is open.
func (p TemplateForm) advanced(ctx context.Context) bool {
	held := p.Values["hold_out_percent"]
	guarded, within := p.Values["protection"], p.Values["use_within_hours"]
	return p.stacked(ctx) || p.Values["refund_to"] == "stock" || within != "" && within != "0" || p.err(ctx, "use_within_hours")+p.err(ctx, "refund_to") != "" || p.Values["claim_mode"] == "gate" || guarded != "" && guarded != "off" || held != "" && held != "0" || p.err(ctx, "claim_mode")+p.err(ctx, "hold_out_percent")+p.err(ctx, "protection") != ""
}

// more reports whether a field that most drops leave empty has a value or an error.
func (p TemplateForm) more(ctx context.Context) bool {
	for _, f := range template.Fields.With(field.Lines) {
		if p.Values[f.Name] != "" || p.err(ctx, f.Name) != "" {
			return true
		}
	}
	return p.Values["claim_url"] != "" || p.err(ctx, "claim_url") != ""
}

// ambiguous reports whether the named time was refused because it occurs twice, or one of its two
// instants was already chosen.
func (p TemplateForm) ambiguous(name string) bool {
	return p.Values[name+"_fold"] != "" || parts.TimeHappensTwice(p.Errors, name)
}

// stacked reports whether a field about other coupons of an order differs from its default or is wrong.
func (p TemplateForm) stacked(ctx context.Context) bool {
	v := p.Values
	return v["stack_group"]+v["stacks_with"] != "" || v["max_per_order"] != "" && v["max_per_order"] != "1" || v["refund_rule"] == "recompute" ||
		p.err(ctx, "stack_group")+p.err(ctx, "stacks_with")+p.err(ctx, "max_per_order")+p.err(ctx, "refund_rule") != ""
}

// choice describes a choice whose options are explained in the catalogue.
// protection is the choice that stays open after the publication.
func (p TemplateForm) protection(ctx context.Context) ui.ChoiceProps {
	c := p.choice(ctx, "protection", "off", "standard", "strict")
	c.Fixed = false
	return c
}

func (p TemplateForm) choice(ctx context.Context, name string, values ...string) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: name, Label: parts.FieldLabel(ctx, name), Value: p.Values[name], Error: p.err(ctx, name), Fixed: p.Published}
	for _, v := range values {
		c.Options = append(c.Options, ui.Option{Value: v, Label: ui.T(ctx, name+"."+v), Help: ui.T(ctx, name+"."+v+".help")})
	}
	return c
}
