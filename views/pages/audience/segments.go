package audience

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dropbell/domain/segment"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// BlankCondition is the condition that is added to a rule first.
func BlankCondition() segment.Rule { return segment.Leaf(segment.Attribute, "", segment.Is) }

func (p Segment) url() string { return fmt.Sprintf("/segments/%d", p.Segment.ID) }

// keeper returns the campaign for which the list must not change, nil if there is no such campaign.
func (p Segment) keeper() *segment.Use {
	for i := range p.Uses {
		if p.Uses[i].Keeps {
			return &p.Uses[i]
		}
	}
	return nil
}

func (p SegmentForm) action() string {
	if p.Segment.ID == 0 {
		return "/segments/new"
	}
	return fmt.Sprintf("/segments/%d/edit", p.Segment.ID)
}

func (p ListForm) action() string {
	if p.Segment.ID == 0 {
		return "/segments/lists/new"
	}
	return fmt.Sprintf("/segments/%d/file", p.Segment.ID)
}

// problem returns the error of the node at place, or of its parts.
func (p SegmentForm) problem(ctx context.Context, place string) string {
	for _, e := range p.Errors {
		rest, ok := strings.CutPrefix(e.Name, place)
		if ok && (rest == "" || rest == ".field" || rest == ".op" || rest == ".name" || strings.HasPrefix(rest, ".values")) {
			return ui.FieldText(ctx, e)
		}
	}
	return ""
}

// ruleProblems returns the errors of the rule, each once.
func (p SegmentForm) ruleProblems(ctx context.Context) (list []string) {
	for _, e := range p.Errors {
		if text := ui.FieldText(ctx, e); strings.HasPrefix(e.Name, "rule") && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

func matchOptions(ctx context.Context) []ui.Option {
	var list []ui.Option
	for _, m := range segment.Matches() {
		list = append(list, ui.Option{Value: string(m), Label: ui.T(ctx, "segments.match."+string(m))})
	}
	return list
}

func fieldOptions(ctx context.Context) []ui.Option {
	var list []ui.Option
	for _, f := range segment.Fields() {
		list = append(list, ui.Option{Value: string(f), Label: ui.T(ctx, "segments.field."+string(f))})
	}
	return list
}

func opOptions(ctx context.Context, f segment.Field) []ui.Option {
	var list []ui.Option
	for _, op := range segment.Ops(f) {
		list = append(list, ui.Option{Value: string(op), Label: parts.OpText(ctx, f, op)})
	}
	return list
}

// picks are the values that a condition can have besides the chosen ones; nil = they are typed.
func (p SegmentForm) picks(ctx context.Context, kind segment.Value, chosen []string) []ui.Option {
	add := ui.Option{Label: ui.T(ctx, "segments.add_value")}
	switch kind {
	case segment.Languages:
		return parts.LanguageChoice(ctx, ui.ChoiceProps{Options: []ui.Option{add}}, nil, chosen...).Options
	case segment.Zones:
		list := []ui.Option{add}
		for _, zone := range p.Zones {
			if !slices.Contains(chosen, zone) {
				list = append(list, ui.Option{Value: zone, Label: parts.ZoneName(ctx, zone)})
			}
		}
		return list
	}
	return nil
}

// estimateText describes the approximate number of members.
func estimateText(ctx context.Context, e *segment.Estimate) string {
	switch {
	case e == nil:
		return ui.T(ctx, "segments.no_estimate")
	case e.Exact:
		return ui.N(ctx, "segments.exactly", e.Members)
	}
	return ui.N(ctx, "segments.about", e.Members, e.Margin)
}

func estimateShare(e *segment.Estimate) float64 {
	if e == nil || e.Users == 0 {
		return 0
	}
	return min(100, 100*float64(e.Members)/float64(e.Users))
}

func (p SegmentForm) title(ctx context.Context) string {
	if p.Segment.ID == 0 {
		return ui.T(ctx, "segments.new")
	}
	return ui.T(ctx, "segments.edit_title", p.Segment.Name)
}

func (p ListForm) title(ctx context.Context) string {
	if p.Segment.ID == 0 {
		return ui.T(ctx, "segments.new_list")
	}
	return ui.T(ctx, "segments.add_to", p.Segment.Name)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func joined(list []string) string { return strings.Join(list, ", ") }

// segmentNote returns the number of a segment and, if known, the staff member that created it.
func segmentNote(ctx context.Context, g segment.Segment) string {
	note := "#" + parts.ID(g.ID)
	if name := parts.ActorName(ctx, g.CreatedBy); name != "" {
		note += " · " + name
	}
	return note
}
