package stories

import (
	"github.com/a-h/templ"

	"time"

	owned "dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// grantOf is a list for the template of all these stories.
func grantOf(id int64, dry bool, state job.State, total, done, failed int64) couponpages.Grant {
	j := workOf(id, "Moon cake night: ¥20 off everything at Harbour Tea House", state, total, done, failed)
	j.Kind, j.Needs = owned.GrantKind, staff.ManageUsers
	t := coupon(1, "Moon cake night: ¥20 off everything at Harbour Tea House", -time.Hour)
	t.Issued = t.Stock - 2_000
	return couponpages.Grant{Job: j, Params: owned.GrantParams{TemplateID: 1, DryRun: dry, Source: owned.Source{File: "Testers July.csv"}}, Template: t, MayGive: true}
}

func grants() []Story {
	t := grantOf(1, true, job.Done, 1, 1, 0).Template
	dry := grantOf(12, true, job.Done, 1_204, 1_180, 24)
	dry.Counts = map[string]int64{"ok": 1_180, "limit_reached": 11, "unknown_user": 6, "duplicate": 4, "bad_user_id": 3}
	dry.Rows = []owned.GrantRow{{Line: 2, UserID: 1001, Result: "ok"}, {Line: 3, UserID: 1002, Result: "limit_reached"}, {Line: 4, Input: "Ann Lee", Result: "bad_user_id"},
		{Line: 5, UserID: 9007199254740993, Result: "unknown_user"}, {Line: 6, UserID: 1001, Result: "duplicate"}}
	dry.Next = "/grants/12?after=6"
	paused, draft, cancelled := dry, t, t
	paused.Template.Stored, draft.Stored, cancelled.Stored = template.Paused, template.Draft, template.Cancelled
	short, filtered, running, waiting := dry, dry, grantOf(13, false, job.Running, 1_204, 640, 12), grantOf(11, true, job.Waiting, 0, 0, 0)
	short.Template.Issued = short.Template.Stock - 40
	filtered.Result, filtered.Rows, filtered.First, filtered.Next = "limit_reached", dry.Rows[1:2], "/grants/12?result=limit_reached", ""
	running.Params.Reason, running.Counts = "thanks to the testers", map[string]int64{"issued": 640, "unknown_user": 12}
	idle := running
	idle.Job.IdleSince = ptr(Now().Add(-2 * time.Minute))
	applied := dry
	applied.Applied, applied.Rows = 13, nil
	given := grantOf(13, false, job.Done, 1_204, 1_179, 25)
	given.Params.Reason = "thanks to the testers"
	given.Counts = map[string]int64{"issued": 1_150, "accepted": 29, "limit_reached": 11, "sold_out": 1, "unknown_user": 6, "duplicate": 4, "bad_user_id": 3}
	given.Rows = []owned.GrantRow{{Line: 2, UserID: 1001, Result: "issued", CouponID: 90_001}, {Line: 3, UserID: 1002, Result: "limit_reached"}, {Line: 7, UserID: 1004, Result: "accepted"}}
	failed := grantOf(10, true, job.Failed, 0, 0, 0)
	failed.Job.Reason, failed.Params.Source = owned.ErrNoUserColumn.Code, owned.Source{} // a file without a name
	long := failed
	long.Job.Reason, long.Job.Detail = owned.ErrTooManyGrants.Code, owned.ErrTooManyGrants.Text
	long.Job.ID, long.Params.File = 9, "members_of_the_harbour_tea_house_who_came_to_the_opening_night_2026.csv"
	back := grantOf(14, false, job.Done, 1_179, 1_170, 9)
	back.Job.Kind, back.Params.Reason = owned.TakeBackKind, "the list was the wrong one"
	back.Errors = []job.RowError{{Line: 17, Row: "1017 · 90013", Error: "only an unused coupon can be revoked; this one is used",
		Because: []fault.Field{{Key: "rule.kept_used"}}}}
	back.Counts = map[string]int64{owned.TakenBack: 1_170, string(owned.Used): 6, string(owned.Locked): 3}
	waiting.Params.Source = owned.Source{IDs: true}
	again := grantOf(15, false, job.Done, 9, 3, 6)
	again.Job.Kind, again.Params.Reason, again.Errors = owned.TakeBackKind, "those whose lock has ended", back.Errors
	again.Counts = map[string]int64{owned.TakenBack: 3, owned.TakenBefore: 1_170, string(owned.Used): 6}
	viewer := given
	viewer.MayGive, viewer.Rows = false, nil
	row := func(g couponpages.Grant) couponpages.GrantRow {
		return couponpages.GrantRow{Job: g.Job, Params: g.Params}
	}
	confirm := func(broken string) templ.Component {
		return asked(func(l *i18n.Locale) pageparts.Confirmation {
			c := pageparts.Confirmation{Active: "templates", Crumbs: []ui.Crumb{{Label: l.T("nav.templates"), URL: "/templates"}}, ConfirmProps: ui.ConfirmProps{Title: l.T("grants.apply.title", "Moon cake night"),
				Points: []string{l.N("grants.apply.1", 1_180), l.T("grants.apply.2"), l.N("grants.apply.failed", 24)},
				Action: "/grants/12/apply", Cancel: "/grants/12", Submit: l.T("grants.apply"), Kind: "primary", NeedsReason: true}}
			if broken != "" {
				c.ReasonError = l.T(broken, 500)
			}
			return c
		})
	}
	takeBack := asked(func(l *i18n.Locale) pageparts.Confirmation {
		return pageparts.Confirmation{Active: "templates", Crumbs: []ui.Crumb{{Label: l.T("nav.templates"), URL: "/templates"}}, Inside: couponpages.ReturnChoice(true),
			ConfirmProps: ui.ConfirmProps{Title: l.T("grants.takeback.title", "Moon cake night"), Points: []string{l.N("grants.takeback.1", 1_179), l.T("grants.takeback.2"), l.T("coupon.revoke.2")},
				Action: "/grants/13/takeback", Cancel: "/grants/13", Submit: l.T("grants.takeback"), Kind: "danger", NeedsReason: true}}
	})
	return []Story{
		{Name: "grants/empty", Page: couponpages.Grants{}.Page()},
		{Name: "grants/empty-of-a-template", Page: couponpages.Grants{Template: &t, MayGive: true}.Page()},
		{Name: "grants/one", Page: couponpages.Grants{Template: &t, List: []couponpages.GrantRow{row(dry)}}.Page(), Role: staff.Viewer},
		{Name: "grants/many", Page: couponpages.Grants{Template: &t, MayGive: true, List: []couponpages.GrantRow{row(back), row(running), row(idle), row(dry), row(waiting), row(failed), row(long)}, Paged: pageparts.Paged{First: "/grants", Next: "/grants?before=10"}}.Page()},
		{Name: "grants/of-all", Page: couponpages.Grants{List: []couponpages.GrantRow{row(dry), row(waiting), row(failed), row(long)}}.Page()},
		{Name: "grants/of-a-draft", Page: couponpages.Grants{Template: &draft, MayGive: true}.Page()},
		{Name: "grants/of-a-cancelled", Page: couponpages.Grants{Template: &cancelled, MayGive: true, List: []couponpages.GrantRow{row(dry)}}.Page()},
		{Name: "grants/new-for-a-draft", Page: couponpages.GrantStart{Template: draft}.Page()},
		{Name: "grants/new", Page: couponpages.GrantStart{Template: t}.Page()},
		{Name: "grants/refused", Page: couponpages.GrantStart{Template: t, Errors: []fault.Field{{Name: "file", Key: "rule.user_column", Message: "the list needs a column user_id"}}}.Page()},
		{Name: "grant/waiting", Page: waiting.Page()},
		{Name: "grant/dry-run", Page: dry.Page()},
		{Name: "grant/dry-run-short", Page: short.Page()},
		{Name: "grant/dry-run-filtered", Page: filtered.Page()},
		{Name: "grant/dry-run-applied", Page: applied.Page()},
		{Name: "grant/dry-run-paused", Page: paused.Page()},
		{Name: "grant/failed", Page: failed.Page()},
		{Name: "grant/too-many-rows", Page: long.Page()},
		{Name: "grant/apply", Page: confirm("")},
		{Name: "grant/apply-refused", Page: confirm("rule.reason")},
		{Name: "grant/running", Page: running.Page()},
		{Name: "grant/idle", Page: idle.Page()},
		{Name: "grant/given", Page: given.Page()},
		{Name: "grant/given-viewer", Page: viewer.Page(), Role: staff.Viewer},
		{Name: "grant/take-back", Page: takeBack},
		{Name: "grant/taken-back", Page: back.Page()},
		{Name: "grant/taken-back-again", Page: again.Page()},
	}
}
