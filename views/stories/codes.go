package stories

import (
	"github.com/a-h/templ"

	"time"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// aCode is a code that was never sold.
func aCode() redeemcode.Code {
	c, err := redeemcode.Parse("1XBE-VF78-VYKW-JAGH")
	if err != nil {
		panic(err) // it is written right above
	}
	return c
}

func codeBatches() []redeemcode.Batch {
	at := func(ago time.Duration) time.Time { return Now().Add(-ago) }
	b := redeemcode.Batch{TemplateID: 1, TemplateName: "Moon cake night", ShopNumber: 10, ShopTimezone: "Asia/Shanghai", Key: 1, State: redeemcode.Ready,
		JobID: 12, JobState: job.Done, CreatedBy: "staff:2 Ada Okafor"}
	list := []redeemcode.Batch{b, b, b, b}
	list[0].ID, list[0].First, list[0].Count, list[0].Generated, list[0].State, list[0].JobState, list[0].CreatedAt = 9, 1_060_001, 1_000_000, 412_000, redeemcode.Generating, job.Running, at(4*time.Second)
	list[1].ID, list[1].First, list[1].Count, list[1].Generated, list[1].Used, list[1].CreatedAt = 7, 60_001, 50_000, 50_000, 31_204, at(26*time.Hour)
	list[2].ID, list[2].First, list[2].Count, list[2].Generated, list[2].State, list[2].JobState, list[2].CreatedAt = 6, 10_001, 50_000, 20_000, redeemcode.Generating, job.Failed, at(27*time.Hour)
	list[3].ID, list[3].First, list[3].Count, list[3].Generated, list[3].Used, list[3].State, list[3].CreatedAt = 3, 1, 10_000, 10_000, 212, redeemcode.Revoked, at(50*time.Hour)
	list[3].RevokedAt, list[3].RevokedBy, list[3].RevokeReason = ptr(at(49*time.Hour)), "staff:1 Lin Mei", "sent to the wrong partner, who has put the whole list on their public pages"
	return list
}

func codes() []Story {
	t := coupon(1, "Moon cake night", 11*time.Minute)
	t.Obtain = template.ByCode
	page := couponpages.Codes{Template: &t, List: codeBatches(), Supply: redeemcode.Supply{Outstanding: 1_018_796, Left: 900_000}, RequestKey: "K"}
	one := page
	one.List, one.Supply = codeBatches()[1:2], redeemcode.Supply{Outstanding: 18_796, Left: 20_000}
	empty, closed, wrong := one, one, one
	empty.List = nil
	wrong.Count, wrong.Errors = "ten", []fault.Field{{Name: "count", Key: "rule.code_count", Message: "must be between 1 and 1000000"}}
	all := couponpages.Codes{List: codeBatches(), Paged: pageparts.Paged{Next: "/codes?before=3"}, Check: couponpages.CodeCheck{}}
	finding := func(v redeemcode.CheckResult) *redeemcode.Finding {
		return &redeemcode.Finding{Verdict: v, Code: aCode(), Serial: 60_417, Batch: codeBatches()[1], Place: 417}
	}
	used, withdrawn := finding(redeemcode.Spent), finding(redeemcode.Withdrawn)
	used.Use = &redeemcode.Use{UserID: 9_007_199_254_740_993, CouponID: 4_711, At: Now().Add(-3 * time.Hour)}
	withdrawn.Batch = codeBatches()[3]
	revoke := asked(func(l *i18n.Locale) pageparts.Confirmation {
		return pageparts.Confirmation{Active: "templates", Crumbs: []ui.Crumb{{Label: l.T("nav.templates"), URL: "/templates"}}, ConfirmProps: ui.ConfirmProps{Title: l.T("codes.confirm.title", "7"),
			Points: []string{l.N("codes.confirm.1", 18_796), l.N("codes.confirm.2", 31_204)},
			Action: "/templates/1/codes/7/revoke", Cancel: "/templates/1/codes", Submit: l.T("codes.revoke"), Kind: "danger", NeedsReason: true, ReasonError: l.T("rule.required")}}
	})
	list := []Story{
		{Name: "codes/empty", Page: empty.Page()},
		{Name: "codes/one", Page: one.Page()},
		{Name: "codes/many", Page: page.Page()},
		{Name: "codes/viewer", Page: page.Page(), Role: staff.Viewer},
		{Name: "codes/closed", Page: said(func(l *i18n.Locale) templ.Component {
			closed.Closed = l.T("codes.closed")
			return closed.Page()
		})},
		{Name: "codes/wrong", Page: wrong.Page()},
		{Name: "codes/all", Page: all.Page()},
		{Name: "codes/all-empty", Page: couponpages.Codes{}.Page()},
		{Name: "codes/revoke", Page: revoke},
		{Name: "codes/check-used", Page: couponpages.CodeCheck{Finding: used}.Page()},
		{Name: "codes/check-revoked", Page: couponpages.CodeCheck{Finding: withdrawn}.Page()},
		{Name: "codes/check-good", Page: couponpages.CodeCheck{Finding: finding(redeemcode.Good)}.Page()},
		{Name: "codes/check-not-ready", Page: couponpages.CodeCheck{Finding: finding(redeemcode.NotReadyYet)}.Page()},
	}
	for _, v := range []redeemcode.CheckResult{redeemcode.Unpublished, redeemcode.NotYet, redeemcode.Halted, redeemcode.GoneAll, redeemcode.Over, redeemcode.CalledOff, redeemcode.NotByCode} {
		f := finding(v)
		f.Template = t
		if v == redeemcode.Over || v == redeemcode.CalledOff {
			f.Template.Stored, f.Template.EndedAt = template.Closed, ptr(Now().Add(-20*time.Minute))
		}
		list = append(list, Story{Name: "codes/check-" + string(v), Page: couponpages.CodeCheck{Finding: f}.Page()})
	}
	for _, v := range []redeemcode.CheckResult{redeemcode.Unreadable, redeemcode.Forged, redeemcode.NeverIssued, redeemcode.Elsewhere} {
		list = append(list, Story{Name: "codes/check-" + string(v), Page: couponpages.CodeCheck{Typed: "1XBE-VF78", Finding: &redeemcode.Finding{Verdict: v, Code: aCode()}}.Page()})
	}
	return list
}
