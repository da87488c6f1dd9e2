package coupons

import (
	"context"
	"fmt"
	"strings"

	"dropbell/domain/review"
	"dropbell/views/ui"
)

// ReviewURL returns the address of a group of claims.
func ReviewURL(id int64) string { return fmt.Sprintf("/reviews/%d", id) }

// DropReviewsURL returns the address of the groups of one drop.
func DropReviewsURL(templateID int64) string { return fmt.Sprintf("/reviews?template=%d", templateID) }

// ReviewFilters are the choices of groups besides the undecided groups.
func ReviewFilters() []string { return []string{"all"} }

// ReviewCrumbs lead from a step back to its group.
func ReviewCrumbs(list string, v review.Review) []ui.Crumb {
	return []ui.Crumb{{Label: list, URL: "/reviews"}, {Label: v.DropName, URL: ReviewURL(v.ID)}}
}

// RuleNames returns the names of rules for a file.
func RuleNames(rules []review.Rule) string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = string(r)
	}
	return strings.Join(names, " ")
}

// sentence says what the claims of a group have in common.
func sentence(ctx context.Context, v review.Review) string {
	l := ui.From(ctx).Locale
	parts := []string{l.N("review.claims", v.Coupons)}
	if v.Facts.Networks > 0 {
		parts = append(parts, l.N("review.networks", v.Facts.Networks))
	}
	if v.Facts.Agents > 0 {
		parts = append(parts, l.N("review.agents", v.Facts.Agents))
	}
	for _, r := range v.Rules {
		switch r {
		case review.AtOnce, review.BeforeAnybody:
			parts = append(parts, l.T("review.between", v.Facts.From, v.Facts.To))
		case review.NothingOpened:
			parts = append(parts, l.T("review.nothing", v.Facts.Nothing))
		default:
			parts = append(parts, l.T("review.says."+string(r)))
		}
	}
	return strings.Join(distinct(parts), l.T("ui.list_join"))
}

// distinct keeps the first of equal texts.
func distinct(list []string) (kept []string) {
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			kept = append(kept, s)
		}
		seen[s] = true
	}
	return kept
}

func reviewTone(s review.State) ui.Tone {
	switch s {
	case review.Open, review.Proposed, review.Suspended:
		return ui.Warn
	case review.Suspending, review.Returning, review.Restoring:
		return ui.Info
	case review.Returned:
		return ui.Bad
	case review.Restored:
		return ui.Good
	}
	return ui.Neutral
}

func memberTone(state string) ui.Tone {
	switch state {
	case "suspended":
		return ui.Warn
	case "returned":
		return ui.Bad
	case "restored":
		return ui.Good
	}
	return ui.Neutral
}
