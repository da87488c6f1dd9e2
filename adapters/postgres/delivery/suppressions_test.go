package delivery_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// listed are the suppressed addresses with their reasons.
func (w *fixture) listed() string {
	w.Helper()
	list, err := deliverydb.NewSuppressions(w.DB).Suppressions(w.Context(), "", "", 100)
	w.Must(err)
	var all []string
	for _, s := range list {
		all = append(all, s.Address+" "+s.Reason)
	}
	return strings.Join(all, ", ")
}

func about(batch int64, id user.ID, s feedback.Status, address string) feedback.Report {
	r := report(batch, id, s)
	r.Address = address
	return r
}

// TestReportsSuppressAddresses: a hard bounce or a complaint suppresses an address at once,
// whatever its case and whether or not the message is known. Reports about text messages, and
// deliveries, suppress no address.
func TestReportsSuppressAddresses(t *testing.T) {
	w := newFixture(t)
	f, batch := w.feedback(), w.sentBatch(10)
	for range 2 {
		w.Must(f.Take(t.Context(), []feedback.Report{about(batch, 1, feedback.Bounced, "Ada@Shop.Example"), about(batch, 2, feedback.Complained, "bob@shop.example"),
			about(batch, 3, feedback.Delivered, "cy@shop.example"), about(batch, 4, feedback.SoftBounced, "di@shop.example"), about(batch, 5, feedback.Bounced, "+4915207770123"),
			{Status: feedback.Complained, Address: "eve@shop.example", Provider: "mailgun"}, {Status: feedback.Delivered, Address: "ada@shop.example"},
			about(batch, 6, feedback.Bounced, "a\x00@shop.example"), about(batch, 7, feedback.Bounced, strings.Repeat("x", 300)+"@shop.example")}))
		if all := w.listed(); all != "ada@shop.example bounced, bob@shop.example complained, eve@shop.example complained" {
			t.Fatal(all)
		}
	}
}

// TestSoftBouncesInARow: five successive mails that were temporarily refused suppress an
// address. A delivered mail resets the count. A report that arrives twice counts once.
func TestSoftBouncesInARow(t *testing.T) {
	w := newFixture(t)
	f := w.feedback()
	w.ready(12, time.Hour)
	next := 0
	take := func(s feedback.Status) {
		t.Helper()
		r := about(w.Number(`select id from batches order by id offset $1 limit 1`, next), user.ID(10*next+1), s, "Ada@shop.example")
		next++
		w.Must(f.Take(t.Context(), []feedback.Report{r, r}))
		w.Must(f.Take(t.Context(), []feedback.Report{r}))
	}
	for range 4 {
		take(feedback.SoftBounced)
	}
	take(feedback.Delivered)
	for range 4 {
		take(feedback.SoftBounced)
	}
	if all := w.listed(); all != "" {
		t.Fatal(all)
	}
	take(feedback.SoftBounced)
	if all := w.listed(); all != "ada@shop.example soft_bounced" {
		t.Fatal(all)
	}
}

// TestReleasedAddresses: a released address stays released. Neither the earlier report nor its
// repetition suppresses the address again; a later report does.
func TestReleasedAddresses(t *testing.T) {
	w := newFixture(t)
	f, batch := w.feedback(), w.sentBatch(10)
	list := &feedback.Suppressions{Store: deliverydb.NewSuppressions(w.DB)}
	by := staff.System()
	old := about(batch, 1, feedback.Bounced, "ada@shop.example")
	old.At = time.Now().Add(-time.Hour)
	w.Must(f.Take(t.Context(), []feedback.Report{old}))
	w.Must(list.Release(t.Context(), by, " ADA@shop.example "))
	if err := list.Release(t.Context(), by, "ada@shop.example"); !errors.Is(err, feedback.ErrNotSuppressed) {
		t.Errorf("released twice: %v", err)
	}
	old.Ref = feedback.Ref{}
	unknown := old
	unknown.At = time.Time{}
	w.Must(f.Take(t.Context(), []feedback.Report{old, unknown}))
	if all := w.listed(); all != "" {
		t.Errorf("after a repetition: %s", all)
	}
	later := about(batch, 2, feedback.Complained, "ada@shop.example")
	later.At = time.Now().Add(time.Hour)
	w.Must(f.Take(t.Context(), []feedback.Report{later}))
	if all := w.listed(); all != "ada@shop.example complained" {
		t.Errorf("after a later report: %s", all)
	}
	kept, added, err := list.Add(t.Context(), by, "ada@shop.example", "asked by phone")
	if w.Must(err); added || kept.Reason != "complained" {
		t.Errorf("added again: %+v", kept)
	}
	w.Must(list.Release(t.Context(), by, "ada@shop.example"))
	if kept, added, err = list.Add(t.Context(), by, "Ada@shop.example", "asked by phone"); err != nil || !added || kept.Reason != "staff" || kept.Address != "ada@shop.example" {
		t.Errorf("%+v %v %v", kept, added, err)
	}
	for _, odd := range []string{"", "ada", "Ada <ada@shop.example>", "a@b, c@d", strings.Repeat("x", 250) + "@b.example"} {
		if _, _, err := list.Add(t.Context(), by, odd, ""); err == nil {
			t.Errorf("%q was taken", odd)
		}
	}
	if n := w.Number(`select count(*) from audit where object_kind = 'suppression'`); n != 3 {
		t.Errorf("%d entries in the audit log", n)
	}
	if _, err := list.List(t.Context(), staff.Actor{Role: staff.Viewer}, "", "", 10); err == nil {
		t.Error("a viewer sees addresses")
	}
}

// TestLatestSuppressions: the pages of the latest suppressions contain every address once,
// even if many were suppressed at the same time. Released addresses are on no page.
func TestLatestSuppressions(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into suppressions (address, reason, since, released_at) select 'u' || n || '@shop.example', case when n % 2 = 0 then 'bounced' else 'staff' end,
		timestamptz '2026-11-20 12:00:00.000001Z' + n / 5 * interval '1 second', case when n = 7 then now() end from generate_series(0, 16) n`)
	list := &feedback.Suppressions{Store: deliverydb.NewSuppressions(w.DB)}
	by := staff.Actor{Role: staff.Viewer}
	for reason, want := range map[string]int{"": 16, "bounced": 9, "staff": 7, "complained": 0} {
		seen, last := map[string]bool{}, time.Time{}
		for after, first := (feedback.Place{}), true; first || after != (feedback.Place{}); first = false {
			some, next, err := list.Latest(t.Context(), by, reason, after, 3)
			w.Must(err)
			for _, s := range some {
				if seen[s.Address] || reason != "" && s.Reason != reason || !last.IsZero() && s.Since.After(last) {
					t.Errorf("%q: %+v after %v", reason, s, last)
				}
				seen[s.Address], last = true, s.Since
			}
			after = next
		}
		if len(seen) != want || seen["u7@shop.example"] {
			t.Errorf("%q: %d addresses, want %d", reason, len(seen), want)
		}
	}
	if s, err := list.Find(t.Context(), by, " U8@Shop.example "); err != nil || s.Reason != "bounced" {
		t.Errorf("%+v %v", s, err)
	}
	for _, other := range []string{"u7@shop.example", "u8@", "", "%"} {
		if _, err := list.Find(t.Context(), by, other); !errors.Is(err, feedback.ErrNotSuppressed) {
			t.Errorf("%q: %v", other, err)
		}
	}
	_, _, err := list.Add(t.Context(), staff.System(), "ada", strings.Repeat("月", 201))
	if broken, ok := errors.AsType[*fault.Fields](err); !ok || len(broken.List) != 2 {
		t.Errorf("two broken fields: %v", err)
	}
	if _, added, err := list.Add(t.Context(), staff.System(), "ada@shop.example", strings.Repeat("月", 200)); err != nil || !added {
		t.Errorf("%v %v", added, err)
	}
}

// TestSuppressedRecipients: recipients with a suppressed address are reported with the
// contacts; a changed address is not suppressed.
func TestSuppressedRecipients(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, email) select n, 'User' || n || '@shop.example' from generate_series(1, 4) n`)
	w.Exec(`insert into suppressions (address, reason, released_at) values ('user1@shop.example', 'bounced', null), ('user2@shop.example', 'bounced', now()), ('user3@shop.example', 'staff', null)`)
	w.Exec(`update users set email = 'new@shop.example' where id = 3`)
	for _, named := range []bool{false, true} {
		list, err := w.Batches.Recipients(t.Context(), delivery.Email, []user.ID{1, 2, 3, 4}, named)
		w.Must(err)
		for _, u := range list {
			if u.Suppressed != (u.ID == 1) || u.Email == "" {
				t.Errorf("%+v", u)
			}
		}
	}
}

// Processes suppress the same addresses at once, in opposite orders.
func TestProcessesSuppressTogether(t *testing.T) {
	w := newFixture(t)
	var all sync.WaitGroup
	for p := range 2 {
		f := w.feedback()
		for range 20 {
			all.Go(func() {
				var reports []feedback.Report
				for n := range 30 {
					if p == 1 {
						n = 29 - n
					}
					reports = append(reports, feedback.Report{Status: feedback.Bounced, Address: fmt.Sprintf("u%d@shop.example", n), Provider: "ses"})
				}
				if err := f.Take(t.Context(), reports); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if n := w.Number(`select count(*) from suppressions`); n != 30 {
		t.Errorf("%d addresses", n)
	}
}
