package delivery_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func TestDeadLettersAreFoundByGroupFilterAndOneByOne(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(id user.ID) string {
		switch {
		case id <= 3:
			return fmt.Sprintf("status 50%d", id)
		case id <= 5:
			return "no route"
		}
		return ""
	}
	first, _ := m.Bury(1, 8, 3)
	second, _ := m.Bury(1, 2, 3)
	other := delivery.Webhook
	groups := func(f delivery.DeadLetterFilter, by staff.Actor) string {
		t.Helper()
		list, err := m.Letters.Groups(t.Context(), by, f)
		m.Must(err)
		text := ""
		for _, g := range list {
			if g.Channel != delivery.Webhook || g.Sample == "" || g.FirstAt.IsZero() || g.LastAt.Before(g.FirstAt) {
				t.Errorf("%+v", g)
			}
			text += fmt.Sprintf("%s=%d ", g.Fingerprint, g.Dead)
		}
		return text
	}
	viewer := staff.Actor{Role: staff.Viewer}
	for _, c := range []struct {
		f    delivery.DeadLetterFilter
		by   staff.Actor
		want string
	}{
		{delivery.DeadLetterFilter{}, viewer, "status #=5 no route=2 "},
		{delivery.DeadLetterFilter{Channel: new(delivery.Email)}, viewer, ""},
		{delivery.DeadLetterFilter{Channel: &other, Fingerprint: new("no route")}, viewer, "no route=2 "},
		{delivery.DeadLetterFilter{TemplateID: first.ID}, viewer, "status #=3 no route=2 "},
		{delivery.DeadLetterFilter{TemplateID: second.ID}, viewer, "status #=2 "},
		{delivery.DeadLetterFilter{UserID: 2}, viewer, "status #=2 "},
		{delivery.DeadLetterFilter{UserID: 7}, viewer, ""},
		{delivery.DeadLetterFilter{}, staff.Actor{Role: staff.Viewer, Shops: []int64{10}}, "status #=5 no route=2 "},
		{delivery.DeadLetterFilter{Shops: []int64{10}}, staff.Actor{Role: staff.Viewer, Shops: []int64{11}}, ""},
	} {
		if got := groups(c.f, c.by); got != c.want {
			t.Errorf("%+v: %q, want %q", c.f, got, c.want)
		}
	}
	all, err := m.Letters.List(t.Context(), viewer, delivery.DeadLetterFilter{}, 0, 0, 100)
	m.Must(err)
	if len(all) != 7 {
		t.Fatalf("%d letters", len(all))
	}
	one := all[0]
	if one.UserID != 1 || one.TemplateID != first.ID || one.TemplateName != first.Name || one.Reason != delivery.ReasonTooManyTries ||
		one.Detail != "status 501" || one.Attempts != 1 || !one.WorthlessAfter.Equal(first.OpensAt) {
		t.Errorf("%+v", one)
	}
	var paged []delivery.DeadLetter
	for batch, id := int64(0), user.ID(0); ; {
		page, err := m.Letters.List(t.Context(), viewer, delivery.DeadLetterFilter{}, batch, id, 2)
		m.Must(err)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		batch, id = page[len(page)-1].BatchID, page[len(page)-1].UserID
	}
	if !slices.Equal(all, paged) {
		t.Errorf("pages differ: %+v", paged)
	}
	if _, err := m.Letters.Groups(t.Context(), staff.Actor{}, delivery.DeadLetterFilter{}); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("nobody may look: %v", err)
	}
}

// TestDryRunIsWhatTheJobDoes compares the dry run with the job by every kind of
// filter. The letters are in time, too late, moved, cancelled, closed, or sent
// after all.
func TestDryRunIsWhatTheJobDoes(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(id user.ID) string { return fmt.Sprintf("cause %c", 'a'+id%2) }
	live, liveSlot := m.Bury(1, 10, 4)
	late, _ := m.Bury(11, 14, 4)
	m.Exec(`update batches set worthless_after = now() - interval '1 second' where template_id = $1`, late.ID)
	moved, _ := m.Bury(15, 18, 4)
	m.MoveBy(moved, time.Hour)
	cancelled, _ := m.Bury(19, 22, 4)
	closed, _ := m.Bury(23, 26, 4)
	for tr, tpl := range map[template.Transition]template.Template{template.Cancelling: cancelled, template.Closing: closed} {
		_, err := m.Service.Do(t.Context(), staff.System(), tpl.ID, 0, tr, "")
		m.Must(err)
	}
	m.MarkSent(live, 3)
	m.MarkSent(late, 12)
	m.Cause = func(user.ID) string { return "" }
	batch := m.Number(`select min(id) from batches where template_id = $1`, live.ID)
	for _, c := range []struct {
		f    delivery.DeadLetterFilter
		want delivery.Triage
	}{
		{delivery.DeadLetterFilter{UserID: 1}, delivery.Triage{Total: 1, InTime: 1}},
		{delivery.DeadLetterFilter{UserID: 1}, delivery.Triage{}}, // waits for its retry now
		{delivery.DeadLetterFilter{BatchID: batch}, delivery.Triage{Total: 3, InTime: 2, AlreadySent: 1}},
		{delivery.DeadLetterFilter{Fingerprint: new("cause a"), TemplateID: live.ID}, delivery.Triage{Total: 3, InTime: 3}},
		{delivery.DeadLetterFilter{TemplateID: late.ID}, delivery.Triage{Total: 4, TooLate: 3, AlreadySent: 1}},
		{delivery.DeadLetterFilter{TemplateID: moved.ID}, delivery.Triage{Total: 4, TooLate: 4}},
		{delivery.DeadLetterFilter{TemplateID: cancelled.ID}, delivery.Triage{Total: 4, TooLate: 4}},
		{delivery.DeadLetterFilter{TemplateID: closed.ID}, delivery.Triage{Total: 4, TooLate: 4}},
		{delivery.DeadLetterFilter{}, delivery.Triage{Total: 18, InTime: 3, TooLate: 15}},
	} {
		before := m.Number(`select hashtext(string_agg(e::text, '' order by batch_id, user_id)) from exceptions e`)
		got, err := m.Letters.DryRun(t.Context(), staff.Actor{Role: staff.Viewer}, c.f, 0)
		m.Must(err)
		if got != c.want {
			t.Errorf("%+v: dry run %+v, want %+v", c.f, got, c.want)
		}
		if after := m.Number(`select hashtext(string_agg(e::text, '' order by batch_id, user_id)) from exceptions e`); after != before {
			t.Errorf("%+v: the dry run changed something", c.f)
		}
		j := m.Work(delivery.Replay, c.f, 0)
		if j.FinishedAt == nil {
			t.Errorf("%+v: dry run %+v, job %+v", c.f, got, j)
		}
		want := j
		want.State, want.Total, want.Done, want.Late, want.Sent = "finished", got.Total, got.InTime, got.TooLate, got.AlreadySent
		if diff := cmp.Diff(want, j); diff != "" {
			t.Errorf("%+v: the job differs from its dry run (-want +got):\n%s", c.f, diff)
		}
		m.CountersAgree("after a replay")
	}
	if state := m.SlotState(liveSlot.ID); state != "sending" {
		t.Errorf("the slot is %s", state)
	}
	before := len(m.Hook.Got)
	m.Drain()
	if len(m.Hook.Got) != before {
		t.Errorf("somebody got a message of another name")
	}
	for _, tpl := range []template.Template{live, late} {
		m.Finish(tpl)
	}
	again := map[user.ID]bool{}
	for id := user.ID(1); id <= 26; id++ {
		for _, tpl := range []template.Template{live, late, moved, cancelled, closed} {
			if m.Times(tpl, id) > 1 {
				again[id] = true
			}
		}
	}
	for id := user.ID(1); id <= 26; id++ {
		if want := id <= 10 && id != 3; again[id] != want {
			t.Errorf("user %d was tried again: %v", id, again[id])
		}
	}
	if sums := m.Balanced(live); sums[delivery.Webhook] != (delivery.Counts{Reserved: 10, Sent: 10}) {
		t.Errorf("%+v", sums)
	}
	if sums := m.Balanced(late); sums[delivery.Webhook] != (delivery.Counts{Reserved: 4, Sent: 1, Dead: 3}) {
		t.Errorf("%+v", sums)
	}
}

// TestDeadLetterJobsStayWithinShops: staff who are limited to shops neither see
// nor stop jobs that concern other shops.
func TestDeadLetterJobsStayWithinShops(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	operator := func(shops ...int64) staff.Actor {
		return staff.Actor{Label: "staff:3", Name: "Op", Role: staff.Operator, Shops: shops}
	}
	begin := func(by staff.Actor) int64 {
		j, err := m.Letters.Start(t.Context(), by, delivery.DeadLetterOrder{Action: delivery.Replay, Reason: "provider is back"})
		m.Must(err)
		return j.ID
	}
	everywhere, ten, both := begin(operator()), begin(operator(10)), begin(operator(10, 11))
	for _, c := range []struct {
		by   staff.Actor
		sees []int64
	}{
		{operator(), []int64{both, ten, everywhere}}, {operator(10, 11, 12), []int64{both, ten}},
		{operator(10), []int64{ten}}, {operator(12), nil},
	} {
		list, err := m.Letters.Jobs(t.Context(), c.by, 10)
		m.Must(err)
		var ids []int64
		for _, j := range list {
			ids = append(ids, j.ID)
		}
		if !slices.Equal(ids, c.sees) {
			t.Errorf("shops %v see %v, want %v", c.by.Shops, ids, c.sees)
		}
	}
	for _, c := range []struct {
		by  staff.Actor
		job int64
		err error
	}{
		{operator(10), everywhere, delivery.ErrNoDeadLetterJob}, {operator(11), both, delivery.ErrNoDeadLetterJob},
		{operator(12), ten, delivery.ErrNoDeadLetterJob}, {operator(10, 11), both, nil}, {operator(10), ten, nil}, {operator(), everywhere, nil},
	} {
		if err := m.Letters.Cancel(t.Context(), c.by, c.job); !errors.Is(err, c.err) {
			t.Errorf("shops %v cancel job %d: %v, want %v", c.by.Shops, c.job, err, c.err)
		}
	}
	if n := m.Number(`select count(*) from audit where action = 'dead_letters.replay' and reason = 'provider is back'`); n != 3 {
		t.Errorf("%d audit entries have the reason, want 3", n)
	}
}

func TestDeadLetterJobsAreChecked(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(user.ID) string { return "status 500" }
	m.Bury(1, 4, 4)
	for _, by := range []staff.Actor{{}, {Role: staff.Viewer}, {Role: staff.Marketer}} {
		if _, err := m.Letters.Start(t.Context(), by, delivery.DeadLetterOrder{Action: delivery.Replay, Filter: delivery.DeadLetterFilter{}}); !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("%s may replay: %v", by.Role, err)
		}
		if err := m.Letters.Cancel(t.Context(), by, 1); !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("%s may cancel: %v", by.Role, err)
		}
	}
	operator := staff.Actor{Label: "staff:3", Name: "Op", Role: staff.Operator}
	for _, rate := range []int{-1, 1_000_001} {
		if _, err := m.Letters.Start(t.Context(), operator, delivery.DeadLetterOrder{Action: delivery.Replay, Filter: delivery.DeadLetterFilter{}, Rate: rate}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("rate %d: %v", rate, err)
		}
	}
	if _, err := m.Letters.Start(t.Context(), operator, delivery.DeadLetterOrder{Action: "resend", Filter: delivery.DeadLetterFilter{}}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("another action: %v", err)
	}
	elsewhere := operator
	elsewhere.Shops = []int64{11}
	foreign, err := m.Letters.Start(t.Context(), elsewhere, delivery.DeadLetterOrder{Action: delivery.Discard, Filter: delivery.DeadLetterFilter{Shops: []int64{10}}})
	m.Must(err)
	m.Must(m.Letters.Step(t.Context()))
	if got := m.Job(foreign.ID); got.Total != 0 || got.Done != 0 || got.State != "finished" {
		t.Errorf("another shop's letters: %+v", got)
	}
	j, err := m.Letters.Start(t.Context(), operator, delivery.DeadLetterOrder{Action: delivery.Replay, Filter: delivery.DeadLetterFilter{UserID: 2}, Rate: 7})
	m.Must(err)
	if j.ID == 0 {
		t.Errorf("%+v", j)
	}
	want := j
	want.Total, want.Rate, want.State, want.Filter.UserID, want.CreatedBy = 1, 7, "running", 2, "staff:3 Op"
	if diff := cmp.Diff(want, j); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	m.Must(m.Letters.Cancel(t.Context(), operator, j.ID))
	if err := m.Letters.Cancel(t.Context(), operator, j.ID); !errors.Is(err, delivery.ErrNoDeadLetterJob) {
		t.Errorf("cancelled twice: %v", err)
	}
	m.Must(m.Letters.Step(t.Context()))
	if got := m.Job(j.ID); got.State != "cancelled" || got.Done != 0 || got.FinishedAt == nil {
		t.Errorf("went on after being cancelled: %+v", got)
	}
	for action, want := range map[string]int64{"dead_letters.replay": 1, "dead_letters.discard": 1, "dead_letters.cancel": 1} {
		if n := m.Number(`select count(*) from audit where action = $1 and actor = 'staff:3 Op' and object_kind = 'dead_letters' and object_id <> ''`, action); n != want {
			t.Errorf("%s: %d audit entries", action, n)
		}
	}
}
