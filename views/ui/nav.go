package ui

import (
	"context"
	"slices"

	"dropbell/domain/staff"
)

// A navPage is one page of a section.
type navPage struct {
	id, url string
	// open reports whether the viewer may go there.
	open func(context.Context) bool
}

// A section is one entry of the menu. Its pages are tabs of one another.
type section struct {
	id, icon string
	pages    []navPage
}

// A navGroup is a part of the menu. The first has no title.
type navGroup struct {
	id       string
	sections []section
}

func may(p staff.Permission) func(context.Context) bool {
	return func(ctx context.Context) bool { return May(ctx, p, 0) }
}

// mayEverywhere hides a page from members who are limited to shops.
func mayEverywhere(p staff.Permission) func(context.Context) bool {
	return func(ctx context.Context) bool { return MayEverywhere(ctx, p) }
}

func navigation() []navGroup {
	view := may(staff.View)
	return []navGroup{
		{"", []section{
			{"overview", "layout-dashboard", []navPage{{"overview", "/", view}}},
			{"templates", "ticket", []navPage{{"templates", "/templates", view}, {"series", "/series", view}}},
			{"campaigns", "speakerphone", []navPage{{"campaigns", "/campaigns", view}, {"recipes", "/recipes", view}}},
			{"calendar", "calendar-event", []navPage{{"calendar", "/campaigns?view=month", view}}},
			{"results", "chart-line", []navPage{{"results", "/results", view}, {"budgets", "/budgets", view}}},
			{"users", "users", []navPage{{"users", "/users", view}, {"segments", "/segments", view}, {"suppressions", "/suppressions", view},
				{"import", "/users/import", seesContacts}}},
			{"coupons", "tag", []navPage{{"coupons", "/coupons", view}, {"codes", "/codes", view}, {"notices", "/notices", view}, {"reviews", "/reviews", view}}},
		}},
		{"operations", []section{
			{"deliver", "send", []navPage{{"deliveries", "/deliveries", view}, {"dead_letters", "/dead-letters", view},
				{"dead_messages", "/dead-messages", mayEverywhere(staff.Operate)}}},
			{"channels", "broadcast", []navPage{{"channels", "/channels", view}, {"providers", "/providers", mayEverywhere(staff.Operate)}, {"mailcheck", "/channels/mail", view}, {"forecast", "/forecast", view}}},
			{"work", "stack-2", []navPage{{"jobs", "/jobs", view}, {"queues", "/queues", mayEverywhere(staff.View)}, {"housekeeping", "/housekeeping", mayEverywhere(staff.View)}}},
			{"audit", "history", []navPage{{"audit", "/audit", view}}},
			{"settings", "building-store", []navPage{{"shops", "/shops", view}, {"staff", "/staff", mayEverywhere(staff.ManageStaff)},
				{"keys", "/keys", mayEverywhere(staff.ManageStaff)}, {"webhooks", "/webhooks", view}}},
		}},
	}
}

// openPages are the pages of s that the viewer may open.
func (s section) openPages(ctx context.Context) []navPage {
	return slices.DeleteFunc(slices.Clone(s.pages), func(p navPage) bool { return !p.open(ctx) })
}

// has reports whether the page belongs to s.
func (s section) has(page string) bool {
	return slices.ContainsFunc(s.pages, func(p navPage) bool { return p.id == page })
}

// shown are the sections of g of which the viewer may open a page.
func (g navGroup) shown(ctx context.Context) []section {
	return slices.DeleteFunc(slices.Clone(g.sections), func(s section) bool { return len(s.openPages(ctx)) == 0 })
}

// unfolded reports whether a titled group shows its entries from the start: for operators, and on
// the group's own pages.
func (g navGroup) unfolded(ctx context.Context, active string) bool {
	return May(ctx, staff.Operate, 0) || slices.ContainsFunc(g.sections, func(s section) bool { return s.has(active) })
}

// siblings are the open pages of the section of a page; nil if there is no other.
func siblings(ctx context.Context, active string) []navPage {
	for _, g := range navigation() {
		for _, s := range g.sections {
			if pages := s.openPages(ctx); s.has(active) && len(pages) > 1 {
				return pages
			}
		}
	}
	return nil
}
