package stories

import (
	"context"
	"time"

	"github.com/a-h/templ"

	owned "dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	accesspages "dropbell/views/pages/access"
	deliverypages "dropbell/views/pages/delivery"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
)

// longLists are the stories of long lists and of bulk steps.
func longLists() []Story {
	var all []Story
	for _, group := range [][]Story{work(), deliveries(), bulks()} {
		all = append(all, group...)
	}
	return all
}

func workOf(id int64, title string, state job.State, total, done, failed int64) job.Job {
	j := job.Job{ID: id, Kind: "templates.bulk", Title: title, State: state, Needs: staff.ManageTemplates, Total: total, Done: done, Failed: failed,
		CreatedBy: "staff:2 Ada Okafor", CreatedAt: Now().Add(-4 * time.Minute)}
	if state != job.Waiting {
		j.StartedAt = ptr(Now().Add(-3 * time.Minute))
	}
	if state.Over() {
		j.FinishedAt = ptr(Now().Add(-20 * time.Second))
	}
	return j
}

func work() []Story {
	waiting, running := workOf(9, "Close 3 drops", job.Waiting, 3, 0, 0), workOf(8, "Pause 2,318 drops whose name is rather longer than anybody would like to read in a list of jobs", job.Running, 2318, 1204, 3)
	unknown := workOf(7, "Import people.csv", job.Running, 0, 48_211, 0)
	done, partly := workOf(6, "Pause 12 drops", job.Done, 12, 12, 0), workOf(5, "Resume 12 drops", job.Done, 12, 9, 3)
	failed, stopped := workOf(4, "Import people.xlsx", job.Failed, 0, 3, 0), workOf(3, "Cancel 40 drops", job.Cancelled, 40, 11, 0)
	failed.Reason, failed.UploadID = "upload_not_found", 3
	again := workOf(2, "Grant “Moon cake night”", job.Running, 50_000, 12_000, 0)
	again.Reason = "internal"
	idle := running
	idle.ID, idle.IdleSince = 10, ptr(Now().Add(-2*time.Minute))
	failed.Kind, unknown.Kind, again.Kind = user.ImportJob, user.ImportJob, owned.GrantKind
	told := func(line int64, row, key string) job.RowError {
		return job.RowError{Line: line, Row: row, Because: []fault.Field{{Key: key}}}
	}
	rows := []job.RowError{told(4, "#4 Lunch", "fault.drop_not_cancellable"), told(7, "#7 Yesterday", "fault.invalid_transition"), told(12, "", "fault.template_not_found")}
	return []Story{
		{Name: "jobs/empty", Page: workpages.WorkList{}.Page()},
		{Name: "jobs/none", Page: workpages.WorkList{State: "failed"}.Page()},
		{Name: "jobs/one", Page: workpages.WorkList{List: []job.Job{done}}.Page()},
		{Name: "jobs/many", Page: workpages.WorkList{List: []job.Job{idle, waiting, running, unknown, done, partly, failed, stopped}, Paged: pageparts.Paged{First: "/jobs", Next: "/jobs?before=3", Export: "/jobs.csv"}}.Page()},
		{Name: "jobs/waiting", Page: pageparts.Work{Job: waiting, MayStop: true}.Page()},
		{Name: "jobs/running", Page: pageparts.Work{Job: running, MayStop: true, Errors: rows}.Page()},
		{Name: "jobs/idle", Page: pageparts.Work{Job: idle, MayStop: true}.Page()},
		{Name: "jobs/retrying", Page: pageparts.Work{Job: again, MayStop: true}.Page()},
		{Name: "jobs/done", Page: pageparts.Work{Job: done, MayStop: true, Actions: []ui.ButtonProps{{Label: "Resume them again", Icon: "refresh", URL: "/templates"}}}.Page()},
		{Name: "jobs/partly", Page: pageparts.Work{Job: partly, MayStop: true, Errors: rows}.Page()},
		{Name: "jobs/failed", Page: pageparts.Work{Job: failed, Upload: "people.xlsx"}.Page(), Role: staff.Viewer},
	}
}

func batchOf(id int64, kind delivery.Kind, slot int, c delivery.Channel, state delivery.BatchState, counts delivery.Counts) delivery.BatchRow {
	b := delivery.BatchRow{ID: id, Kind: kind, OwnerID: 7, TemplateID: 1, TemplateName: "Moon cake night: ¥20 off everything at Harbour Tea House", ShopNumber: 10, ShopTimezone: "Asia/Shanghai",
		Slot: slot, Channel: c, State: state, From: 1001, To: 2014, Counts: counts, DueAt: Now().Add(-10 * time.Minute), Outcome: delivery.Recovered}
	if state != delivery.BatchReady {
		b.StartedAt, b.Runs = ptr(Now().Add(-599*time.Second)), 1
	}
	if state == delivery.BatchDone {
		b.FinishedAt = ptr(Now().Add(-590 * time.Second))
	}
	return b
}

func deliveries() []Story {
	list := []delivery.BatchRow{
		batchOf(9124, delivery.KindReminder, 2, delivery.SMS, delivery.BatchRunning, delivery.Counts{Reserved: 1000, Sent: 412, Skipped: 31, Dead: 2, InFlight: 555}),
		batchOf(9123, delivery.KindReminder, 2, delivery.Email, delivery.BatchDone, delivery.Counts{Reserved: 1000, Sent: 1000}),
		batchOf(9122, delivery.KindReminder, 12, delivery.App, delivery.BatchDone, delivery.Counts{Reserved: 1000, Sent: 841, Skipped: 124, HeldOut: 112, Expired: 30, Dead: 5}),
		batchOf(9121, delivery.KindCorrection, 0, delivery.WebPush, delivery.BatchReady, delivery.Counts{Reserved: 420, InFlight: 420}),
	}
	campaign := batchOf(9120, delivery.KindCampaign, 0, delivery.Webhook, delivery.BatchDone, delivery.Counts{Reserved: 3, Sent: 3})
	campaign.TemplateID, campaign.TemplateName, campaign.ShopTimezone, campaign.CampaignName = 0, "", "", "Spring greetings"
	list[1].Reported = feedback.Tally{Delivered: 981, Bounced: 12, Complained: 2}
	stopped := list[2]
	stopped.StopReason = delivery.ReasonMoved
	waiting := list[0]
	waiting.Waiting = 14
	sleeping := campaign
	sleeping.State, sleeping.Waiting, sleeping.Counts = delivery.BatchRunning, 1, delivery.Counts{Reserved: 3, Sent: 2, InFlight: 1}
	person := func(id user.ID, o delivery.Outcome, reason, detail string, attempts int) delivery.Recipient {
		r := delivery.Recipient{UserID: id, Outcome: o, Reason: reason, Detail: detail, Attempts: attempts}
		if o != delivery.InFlight {
			r.At = Now().Add(-9 * time.Minute)
		}
		if o == delivery.Failed {
			r.NextRetryAt = ptr(Now().Add(8 * time.Second))
		}
		return r
	}
	people := []delivery.Recipient{person(1001, delivery.Sent, "", "", 0), person(1002, delivery.Recovered, delivery.ReasonProvider, "451 4.3.0 try again later", 2),
		person(1005, delivery.Failed, delivery.ReasonProvider, "the provider answered HTTP 503", 3), person(1009, delivery.Skipped, delivery.ReasonOptedOut, "", 0),
		person(1012, delivery.Dead, delivery.ReasonRefused, "550 5.1.1 no such mailbox", 1), person(1013, delivery.InFlight, "", "", 0)}
	people[0].Reported = feedback.Delivered
	people[1].Reported, people[1].Cause = feedback.Bounced, "550 5.1.1 unknown user"
	broken := deliverypages.Deliveries{Filter: deliverypages.DeliveryFilter{Template: "moon", User: "ada"}, Paged: pageparts.Paged{Errors: []fault.Field{
		{Name: "template", Key: "rule.user_id", Message: "must be a positive whole number"}, {Name: "user", Key: "rule.user_id", Message: "must be a positive whole number"}}}}
	ofUser := deliverypages.DeliveryFilter{User: "1002", Channel: "sms"}
	return []Story{
		{Name: "deliveries/empty", Page: deliverypages.Deliveries{}.Page()},
		{Name: "deliveries/none", Page: deliverypages.Deliveries{Filter: deliverypages.DeliveryFilter{Slot: "3", State: "ready"}}.Page()},
		{Name: "deliveries/broken", Page: broken.Page()},
		{Name: "deliveries/one", Page: deliverypages.Deliveries{List: list[:1], Paged: pageparts.Paged{Export: "/deliveries.csv"}}.Page()},
		{Name: "deliveries/many", Page: deliverypages.Deliveries{List: append(list, campaign), Paged: pageparts.Paged{Next: "/deliveries?after=1_2", First: "/deliveries", Export: "/deliveries.csv"}}.Page()},
		{Name: "deliveries/user", Page: deliverypages.Deliveries{Filter: ofUser, List: list[:2], Paged: pageparts.Paged{Export: "/deliveries.csv"}}.Page(), Role: staff.Viewer},
		{Name: "deliveries/further", Page: deliverypages.Deliveries{Filter: ofUser, Paged: pageparts.Paged{Further: true, Next: "/deliveries?after=1_2"}}.Page()},
		{Name: "deliveries/batch", Page: deliverypages.Batch{Row: waiting, List: people, Paged: pageparts.Paged{Next: "/deliveries/9124?after=1013", Export: "/deliveries/9124/recipients.csv"}}.Page()},
		{Name: "deliveries/batch-stopped", Page: deliverypages.Batch{Row: stopped, List: people[:1], Outcome: "sent", Paged: pageparts.Paged{Export: "/deliveries/9122/recipients.csv"}}.Page()},
		{Name: "deliveries/batch-campaign", Page: deliverypages.Batch{Row: campaign, User: "5"}.Page()},
		{Name: "deliveries/batch-sleeping", Page: deliverypages.Batch{Row: sleeping, List: []delivery.Recipient{
			person(1004, delivery.Sent, "", "", 0), person(1007, delivery.Failed, delivery.ReasonQuietHours, "", 0)}}.Page()},
		{Name: "deliveries/batch-broken", Page: deliverypages.Batch{Row: campaign, User: "ada", Paged: pageparts.Paged{Errors: broken.Errors[1:]}}.Page()},
		{Name: "audit/further", Page: accesspages.Audit{Filter: accesspages.AuditFilter{Text: "weather"}, Paged: pageparts.Paged{Further: true, Next: "/audit?before=5"}}.Page()},
	}
}

func bulks() []Story {
	r := template.Rehearsal{Can: 12, Taken: 2, Cannot: map[template.State]int{template.Draft: 2, template.Closed: 1}, Broken: 1}
	few := template.Rehearsal{Can: 1}
	none := template.Rehearsal{Cannot: map[template.State]int{template.Open: 2000}, More: true}
	ask := func(step template.Transition, r template.Rehearsal) templ.Component {
		return inContext(func(ctx context.Context) templ.Component {
			c := ui.ConfirmProps{Title: ui.N(ctx, "bulk."+string(step)+".title", int64(r.Total())), Points: []string{ui.T(ctx, "bulk."+string(step)+".1")},
				Action: "/templates/bulk", Cancel: "/templates", Submit: ui.T(ctx, "do."+string(step)), Kind: "primary"}
			if step == template.Cancelling {
				c.Keep, c.Submit, c.Kind = ui.T(ctx, "bulk.keep"), ui.T(ctx, "bulk.do.cancel"), "danger"
			}
			return pageparts.Confirmation{Active: "templates", Inside: droppages.BulkSummary(r), ConfirmProps: c}.Page()
		})
	}
	return []Story{
		{Name: "bulk/some", Page: ask(template.Pausing, r)},
		{Name: "bulk/one", Page: ask(template.Publishing, few)},
		{Name: "bulk/none", Page: ask(template.Cancelling, none)},
	}
}
