package coupons

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// GrantURL returns the address of a list of users who are given coupons.
func GrantURL(id int64) string { return fmt.Sprintf("/grants/%d", id) }

// grantKind names the action of a job on a list.
func grantKind(ctx context.Context, j job.Job, p coupon.GrantParams) string {
	switch {
	case j.Kind == coupon.TakeBackKind:
		return ui.T(ctx, "grants.kind.takeback")
	case p.DryRun:
		return ui.T(ctx, "grants.kind.dry")
	}
	return ui.T(ctx, "grants.kind.give")
}

// grantResult names the outcome of a row.
func grantResult(ctx context.Context, result string) string {
	for _, key := range []string{"grants.result." + result, "fault." + result} {
		if ui.From(ctx).Locale.Has(key) {
			return ui.T(ctx, key)
		}
	}
	return result
}

func grantGood(result string) bool {
	return slices.Contains([]string{coupon.GrantOK, coupon.GrantIssued, coupon.GrantAccepted, coupon.TakenBack}, result)
}

func grantTone(result string) ui.Tone {
	switch result {
	case coupon.GrantOK, coupon.GrantIssued, coupon.TakenBack:
		return ui.Good
	case coupon.GrantAccepted:
		return ui.Info
	case "limit_reached", "household_limit", coupon.GrantDuplicate, coupon.TakenBefore:
		return ui.Neutral
	}
	return ui.Warn
}

// listName returns the name of a list: its file, or the ids that a request named; "" if the file
// has no name.
func listName(ctx context.Context, s coupon.Source) string {
	if s.IDs {
		return ui.T(ctx, "grants.user_ids")
	}
	return s.File
}

// name returns the name of the list in a table of lists.
func (g GrantRow) name(ctx context.Context) string {
	return cmp.Or(listName(ctx, g.Params.Source), g.Job.Title)
}

// about describes the purpose of the list if its name does not.
func (p Grants) about(ctx context.Context, g GrantRow) string {
	text := grantKind(ctx, g.Job, g.Params) + " · #" + parts.ID(g.Job.ID)
	if p.Template == nil && g.name(ctx) != g.Job.Title {
		return g.Job.Title + " · " + text
	}
	return text
}

// refusal returns why no list is accepted for the template in its state; "" if lists are accepted,
// or the viewer may not give coupons.
func (p Grants) refusal(ctx context.Context) string {
	if p.Template == nil || !p.MayGive {
		return ""
	}
	return givingRefused(ctx, coupon.CheckGiving(*p.Template, true, ui.From(ctx).Now))
}

func (p GrantStart) refusal(ctx context.Context) string {
	return givingRefused(ctx, coupon.CheckGiving(p.Template, true, ui.From(ctx).Now))
}

func givingRefused(ctx context.Context, err error) string {
	if err == nil {
		return ""
	}
	return ui.FaultText(ctx, err)
}

// TakesBack reports whether the job revokes the coupons that another job gave.
func (p Grant) TakesBack() bool { return p.Job.Kind == coupon.TakeBackKind }

// Crumbs lead back to the template's lists.
func (p Grant) Crumbs(ctx context.Context) []ui.Crumb {
	return []ui.Crumb{{Label: ui.T(ctx, "nav.templates"), URL: "/templates"}, {Label: p.Template.Name, URL: fmt.Sprintf("/templates/%d", p.Template.ID)},
		{Label: ui.T(ctx, "grants.title"), URL: parts.GrantsURL(p.Template.ID)}}
}

func (p Grant) url() string { return GrantURL(p.Job.ID) }

// results returns the outcomes that rows have, successful outcomes first, then by count.
func (p Grant) results() (list []string) {
	for r := range p.Counts {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b string) int {
		switch {
		case grantGood(a) != grantGood(b):
			if grantGood(a) {
				return -1
			}
			return 1
		case p.Counts[a] != p.Counts[b]:
			return int(p.Counts[b] - p.Counts[a])
		}
		return strings.Compare(a, b)
	})
	return list
}

// filter leads to the rows with one result.
func (p Grant) filter(result string) string {
	if result == "" {
		return p.url()
	}
	return p.url() + "?" + url.Values{"result": {result}}.Encode()
}

// short reports whether the stock is smaller than the number of users who could
// get a coupon.
func (p Grant) short() bool {
	return p.Params.DryRun && p.Job.State == job.Done && p.Applied == 0 && p.Template.StockLeft() < p.Job.Done
}

// waits reports whether the dry run has found users who could get a coupon.
func (p Grant) waits() bool {
	return p.MayGive && p.Params.DryRun && p.Job.State == job.Done && p.Applied == 0 && p.Job.Done > 0
}

func (p Grant) mayApply(ctx context.Context) bool { return p.waits() && p.refusal(ctx) == "" }

// refusal says why the template accepts no list now, if a list waits.
func (p Grant) refusal(ctx context.Context) string {
	if !p.waits() {
		return ""
	}
	return givingRefused(ctx, coupon.CheckGiving(p.Template, false, ui.From(ctx).Now))
}

// mayTakeBack reports whether the viewer may revoke the coupons that the job gave. A job that was
// stopped or failed may have given coupons that it had not counted yet.
func (p Grant) mayTakeBack() bool {
	return p.MayGive && !p.Params.DryRun && !p.TakesBack() && p.Job.State.Over() && (p.Job.Done > 0 || p.Job.State != job.Done)
}

func (p Grant) doneLabel(ctx context.Context) string {
	switch {
	case p.TakesBack():
		return ui.T(ctx, "grants.revoked")
	case p.Params.DryRun:
		return ui.T(ctx, "grants.would")
	}
	return ui.T(ctx, "grants.given")
}

func (p Grant) failedLabel(ctx context.Context) string {
	if p.TakesBack() {
		return ui.T(ctx, "grants.kept")
	}
	return ui.T(ctx, "grants.left_out")
}
