package work_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
)

type alerts struct {
	*pgtest.Fixture
	workdb.Alerts
}

func newAlerts(t *testing.T) alerts {
	w := pgtest.New(t)
	return alerts{w, workdb.NewAlerts(w.DB, nil)}
}

var all = append(alert.Kinds(), alert.Test)

func (a alerts) reconcile(list ...alert.Condition) {
	a.Helper()
	a.Must(a.Reconcile(a.Context(), alert.Kinds(), list, alert.Quiet, alert.Deadline))
}

func (a alerts) destination(shop int64, kinds ...alert.Kind) alert.Destination {
	a.Helper()
	d, err := a.AddDestination(a.Context(), alert.Destination{Shop: shop, Form: alert.Slack, Name: "Group", URL: "https://hooks.example/s3cret", Language: "en", Kinds: kinds}, alert.MaxDestinations,
		staff.Entry{Actor: staff.System(), Action: "destination.add", ObjectKind: "destination"})
	a.Must(err)
	return d
}

func (a alerts) take() []alert.Delivery {
	a.Helper()
	list, err := a.Take(a.Context(), 100, time.Minute)
	a.Must(err)
	return list
}

// age lets the last alert be so old.
func (a alerts) age(d time.Duration) {
	a.Helper()
	a.Exec(`update alerts set raised_at = raised_at - $1::interval`, d)
}

// A condition raises one alert, however often and by however many workers it is seen. It raises
// another alert, with the number of repetitions, only if it came back or grew and the quiet time
// has passed. A condition that could not be checked neither begins nor ends.
func TestAlertsAreRaisedOnce(t *testing.T) {
	a := newAlerts(t)
	a.destination(0, alert.Late)
	late := func(n int64) alert.Condition {
		return alert.Condition{Kind: alert.Late, Object: "1", Shop: 10, Template: 1, Name: "Moon", Count: n}
	}
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			a.Must(a.Reconcile(context.WithoutCancel(t.Context()), alert.Kinds(), []alert.Condition{late(5)}, alert.Quiet, alert.Deadline))
		})
	}
	workers.Wait()
	state := func() string {
		return fmt.Sprintf("%d alerts, %d open, %d deliveries", a.Number(`select count(*) from alerts`), a.Number(`select count(*) from alerts where ended_at is null`), a.Number(`select count(*) from alert_deliveries`))
	}
	expect := func(what, want string) {
		t.Helper()
		if got := state(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	expect("ten workers", "1 alerts, 1 open, 1 deliveries")
	for range 3 {
		a.reconcile()
		a.reconcile(late(9))
	}
	expect("again and more at once", "1 alerts, 1 open, 1 deliveries")
	a.Must(a.Reconcile(t.Context(), []alert.Kind{alert.Channel}, nil, alert.Quiet, alert.Deadline))
	expect("not looked at", "1 alerts, 1 open, 1 deliveries")
	a.age(alert.Quiet + time.Second)
	a.reconcile(late(5))
	expect("unchanged", "1 alerts, 1 open, 1 deliveries")
	a.reconcile(late(6))
	expect("grown", "2 alerts, 1 open, 2 deliveries")
	if n := a.Number(`select repeated from alerts order by id desc limit 1`); n != 3 {
		t.Errorf("%d repetitions are told, want 3", n)
	}
	a.reconcile()
	expect("over", "2 alerts, 0 open, 2 deliveries")
	a.age(alert.Quiet + time.Second)
	a.reconcile(late(1))
	expect("come again", "3 alerts, 1 open, 3 deliveries")
}

// Destinations get the alerts of their shop and kinds. Members see the alerts of their shops and
// the alerts about them, and no muted kind.
func TestWhoIsTold(t *testing.T) {
	a := newAlerts(t)
	a.Exec(`insert into staff (id, email, role) overriding system value values (1, 'a@x.example', 'viewer'), (2, 'b@x.example', 'viewer')`)
	everywhere, ten, jobs := a.destination(0, alert.Kinds()...), a.destination(10, alert.Kinds()...), a.destination(10, alert.Job)
	a.reconcile(alert.Condition{Kind: alert.SoldOut, Object: "1", Shop: 10}, alert.Condition{Kind: alert.SoldOut, Object: "2", Shop: 11},
		alert.Condition{Kind: alert.Channel, Object: "email"}, alert.Condition{Kind: alert.Job, Object: "9", Shop: 11, Member: 2})
	got := map[int64][]string{}
	for _, v := range a.take() {
		got[v.Destination.ID] = append(got[v.Destination.ID], fmt.Sprintf("%s:%s", v.Alert.Kind, map[bool]string{true: fmt.Sprint(v.Alert.Shop)}[v.Alert.Shop != 0]))
	}
	for id, want := range map[int64]string{everywhere.ID: "channel: sold_out:10 sold_out:11", ten.ID: "sold_out:10", jobs.ID: ""} {
		if slices.Sort(got[id]); strings.Join(got[id], " ") != want {
			t.Errorf("destination %d is told %v, want %q", id, got[id], want)
		}
	}
	sees := func(m staff.Member) (n, unread int) {
		list, err := a.Alerts.Alerts(t.Context(), m, 0, 10)
		a.Must(err)
		unread, err = a.Unread(t.Context(), m, 100)
		a.Must(err)
		return len(list), unread
	}
	one, two := staff.Member{ID: 1}, staff.Member{ID: 2, Shops: []int64{10}}
	if n, unread := sees(one); n != 3 || unread != 3 {
		t.Errorf("a member of all shops sees %d, %d unread", n, unread)
	}
	if n, unread := sees(two); n != 2 || unread != 2 {
		t.Errorf("a member of one shop sees %d, %d unread", n, unread)
	}
	a.Must(a.MarkRead(t.Context(), 2, 1000))
	a.Must(a.MarkRead(t.Context(), 2, 1))
	a.Must(a.SetMuted(t.Context(), 2, []alert.Kind{alert.SoldOut}))
	if n, unread := sees(two); n != 1 || unread != 0 {
		t.Errorf("after reading and muting: %d, %d unread", n, unread)
	}
}

// One worker at a time has a delivery. The delivery is tried until its deadline. The report of a
// worker that lost the delivery changes nothing.
func TestDeliveriesOfAlerts(t *testing.T) {
	a := newAlerts(t)
	d := a.destination(10, alert.Late)
	a.reconcile(alert.Condition{Kind: alert.Late, Object: "1", Shop: 10, Name: "Moon", Count: 2})
	first := a.take()
	if len(first) != 1 || first[0].Attempts != 0 || first[0].Destination.URL != "https://hooks.example/s3cret" || len(a.take()) != 0 {
		t.Fatalf("taken %+v", first)
	}
	a.Exec(`update alert_deliveries set next_at = now()`) // its worker died
	second := a.take()
	if len(second) != 1 || second[0].Attempts != 1 {
		t.Fatalf("taken over %+v", second)
	}
	a.Must(a.Record(t.Context(), first[0], alert.Outcome{State: alert.Sent}, 0))
	if n := a.Number(`select count(*) from alert_deliveries where state = 'waiting'`); n != 1 {
		t.Error("a worker that lost the delivery recorded its end")
	}
	a.Must(a.Record(t.Context(), second[0], alert.Outcome{State: alert.Waiting, Detail: "HTTP 503"}, time.Hour))
	if len(a.take()) != 0 {
		t.Error("taken before its time")
	}
	a.Exec(`update alert_deliveries set next_at = now(), deadline_at = now()`)
	if n := len(a.take()); n != 0 || a.Number(`select count(*) from alert_deliveries where state = 'dropped' and ended_at is not null`) != 1 {
		t.Errorf("%d taken after the deadline", n)
	}
	a.Must(a.Try(t.Context(), d, time.Minute, staff.Entry{Actor: staff.System(), Action: "destination.test", ObjectKind: "destination"}))
	if list := a.take(); len(list) != 1 || list[0].Alert.Kind != alert.Test {
		t.Fatalf("a test is %+v", list)
	}
	a.Must(a.RemoveDestination(t.Context(), d.ID, staff.Entry{Actor: staff.System(), Action: "destination.remove", ObjectKind: "destination"}))
	a.Must(a.RemoveDestination(t.Context(), d.ID, staff.Entry{Actor: staff.System(), Action: "destination.remove", ObjectKind: "destination"}))
	if n := a.Number(`select count(*) from alert_destinations where url <> '' or secret <> ''`); n != 0 {
		t.Error("the address of a removed destination is kept")
	}
	if n := a.Number(`select count(*) from audit where action like 'destination.%'`); n != 3 {
		t.Errorf("%d audit entries", n)
	}
	if n := a.Number(`select count(*) from audit where before::text || after::text like '%s3cret%'`); n != 0 {
		t.Error("the audit log holds an address")
	}
	log, err := a.Deliveries(t.Context(), []int64{10}, 10)
	a.Must(err)
	if len(log) != 2 || log[0].State != alert.Dropped || log[1].Destination.Name != "Group" {
		t.Errorf("the log says %+v", log)
	}
	if others, err := a.Deliveries(t.Context(), []int64{11}, 10); err != nil || len(others) != 0 {
		t.Errorf("another shop sees %+v (%v)", others, err)
	}
}

func TestDestinationsAreLimited(t *testing.T) {
	a := newAlerts(t)
	refused := 0
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range alert.MaxDestinations + 5 {
		workers.Go(func() {
			_, err := a.AddDestination(context.WithoutCancel(t.Context()), alert.Destination{Shop: 10, Form: alert.WeCom, Name: "x", URL: "https://x.example", Language: "en", Kinds: all[:1]}, alert.MaxDestinations,
				staff.Entry{Actor: staff.System(), Action: "destination.add", ObjectKind: "destination"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused++
			}
		})
	}
	workers.Wait()
	if n := a.Number(`select count(*) from alert_destinations`); n != alert.MaxDestinations || refused != 5 {
		t.Errorf("%d destinations, %d refused", n, refused)
	}
}

// TestAddressesAreSealedForTheirRow: addresses and secrets of destinations are not readable in
// the database, and cannot be opened in another row. Addresses that an older version, or a
// worker without a key, stored unsealed are sealed once at the start.
func TestAddressesAreSealedForTheirRow(t *testing.T) {
	a := newAlerts(t)
	before := a.destination(10, alert.Late)
	a.Exec(`insert into alert_destinations (form, name, url, secret, language, kinds, created_by) values ('feishu', 'Old', 'https://hooks.example/0ld', 'hush', 'en', '{late}', 'x')`)
	box, err := seal.New(alert.SealPurpose, strings.Repeat("k", 32))
	a.Must(err)
	keyed := alerts{a.Fixture, workdb.NewAlerts(a.Fixture.DB, box)}
	after := keyed.destination(11, alert.Late)
	urls := func(s workdb.Alerts) (list []string) {
		found, err := s.Destinations(t.Context(), nil)
		a.Must(err)
		for _, d := range found {
			list = append(list, fmt.Sprint(d.Name, " ", d.URL, " ", d.Secret))
		}
		slices.Sort(list)
		return list
	}
	want := []string{"Group https://hooks.example/s3cret ", "Group https://hooks.example/s3cret ", "Old https://hooks.example/0ld hush"}
	for range 2 {
		if got := urls(keyed.Alerts); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		a.Must(keyed.SealStored(t.Context()))
	}
	if n := a.Number(`select count(*) from alert_destinations where url || secret <> '' or encode(sealed, 'escape') ~ 's3cret|0ld|hush'`); n != 0 {
		t.Errorf("%d rows can be read without the key", n)
	}
	sealed := a.Number(`select sum(hashtext(sealed::text)) from alert_destinations`)
	a.Must(keyed.SealStored(t.Context()))
	if n := a.Number(`select sum(hashtext(sealed::text)) from alert_destinations`); n != sealed {
		t.Error("sealed addresses are sealed again")
	}
	a.Exec(`update alert_destinations set sealed = (select sealed from alert_destinations where id = $1) where id = $2`, before.ID, after.ID)
	if d, err := keyed.Destination(t.Context(), after.ID); err != nil || d.URL != "" || d.Secret != "" {
		t.Errorf("the address of another row was opened: %+v %v", d, err)
	}
	if got := urls(a.Alerts); slices.Contains(got, want[0]) {
		t.Errorf("without the key: %q", got)
	}
	a.Must(keyed.RemoveDestination(t.Context(), before.ID, staff.Entry{Actor: staff.System(), Action: "destination.remove", ObjectKind: "destination"}))
	if n := a.Number(`select count(*) from alert_destinations where id = $1 and sealed is not null`, before.ID); n != 0 {
		t.Error("a removed destination keeps its address")
	}
}

// The conditions that the database knows: late reminders, dead letters, a drop that is sold out,
// a campaign that awaits consent, jobs of members, disabled endpoints.
func TestConditionsOfTheDatabase(t *testing.T) {
	n := pgtest.NewNotifier(t)
	a := alerts{n.Fixture, workdb.NewAlerts(n.DB, nil)}
	kinds := func() (list []string) {
		found, err := a.Conditions(t.Context())
		a.Must(err)
		for _, c := range found {
			list = append(list, fmt.Sprintf("%s %s shop %d: %d", c.Kind, c.Object, c.Shop, c.Count))
		}
		slices.Sort(list)
		return list
	}
	one, two := a.Published(2*time.Hour), a.Published(3*time.Hour)
	n.ReserveAll(one, pgtest.Users(1, 5), pgtest.Reminders(delivery.Webhook, 60)...)
	if list := kinds(); len(list) != 0 {
		t.Errorf("all is well, and %v", list)
	}
	a.Exec(`update slots set due_at = now() - interval '1 minute' where template_id = $1 and slot = 12`, two.ID)
	a.CutSlot(one, 12, 10)
	a.Exec(`update slots set due_at = now() - interval '3 minutes', planned_at = null where template_id = $1 and slot = 12`, one.ID)
	a.Exec(`insert into jobs (kind, title, needs, created_by, actor, state, finished_at, failed) values ('import', 'May', 'x', 'staff:7 Ada', '{}', 'failed', now(), 3),
		('import', 'Old', 'x', 'staff:7 Ada', '{}', 'done', now() - interval '1 hour', 0), ('codes', 'By key', 'x', 'key:1', '{}', 'done', now(), 0)`)
	if got, want := kinds(), []string{"job 1 shop 0: 3", fmt.Sprintf("late %d shop %d: 5", one.ID, one.ShopNumber), fmt.Sprintf("late %d shop %d: 1", two.ID, two.ShopNumber)}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	a.Exec(`update slots set due_at = now() + interval '1 hour' where template_id = $1 and slot = 12`, two.ID)
	a.Exec(`update batches set dead_count = 2, state = 'done'`)
	a.Exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason) select id, 1, 4, 'dead', 'permanent' from batches`)
	a.Exec(`update templates set opens_at = opens_at - interval '4 hours', issued = stock where id = $1`, two.ID)
	a.Exec(`delete from jobs`)
	if got, want := kinds(), []string{fmt.Sprintf("dead_letters template:%d shop %d: 2", one.ID, one.ShopNumber), fmt.Sprintf("sold_out %d shop %d: %d", two.ID, two.ShopNumber, two.Stock)}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// Endpoints that failures disabled are a condition; endpoints that staff disabled are not,
	// however their address was written when it was stored.
	a.Exec(`insert into hook_endpoints (shop_number, url, types, secret, enabled, disabled_reason, disabled_at, created_by)
		select $1, url, '{}', 'x', false, why, now(), 'staff:7 Ada' from (values ('https://hooks.shop.example:8443/path?key=secret', 'failing'), ('https://hooks.shop.example:8443/', 'gone'),
			('https://hooks.shop.example:8443/', 'staff'), ('HTTPS://hooks.shop.example:8443/path', 'failing'), ('no address', 'failing')) as e (url, why)`, one.ShopNumber)
	a.Exec(`update batches set dead_count = 0`)
	a.Exec(`update templates set issued = 0`)
	found, err := a.Conditions(t.Context())
	a.Must(err)
	if len(found) != 4 {
		t.Fatalf("%+v", found)
	}
	unnamed := 0
	for _, c := range found {
		if c.Name == "" {
			unnamed++
		}
		if c.Kind != alert.Endpoint || c.Name != "hooks.shop.example:8443" && c.Name != "" || c.Shop != one.ShopNumber || c.Path != "/webhooks/"+c.Object || c.Detail != "failing" && c.Detail != "gone" {
			t.Errorf("%+v", c)
		}
	}
	if unnamed != 1 {
		t.Errorf("%d endpoints have no name: %+v", unnamed, found)
	}
}
