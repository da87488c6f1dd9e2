package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	couponsdb "dropbell/adapters/postgres/coupons"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/event/hook"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/lab/bench/stack"
	"dropbell/musttest"
)

// shopNumber is the shop of all drops and campaigns of a run.
const shopNumber = 10

// heardWithin is how long after a run the last event may arrive and the last figure may be
// corrected. If a worker is killed while it handles an event, the bus gives the event to another
// worker only after the time that all attempts may take, more than a minute.
const heardWithin = 2 * time.Minute

// A shopServer is the server of the shop: a webhook endpoint that subscribes to all events.
// Every fleet has a shopServer; it is registered before the first process starts and never
// fails. At the end of a run each event that follows from the rows has arrived at the
// shopServer, and the figures that are counted from events equal the rows.
type shopServer struct {
	t      *testing.T
	stack  *stack.Stack
	verify *standardwebhooks.Webhook
	over   chan struct{}
	looked sync.WaitGroup
	// rowsLost is set if the database loses committed rows during the run. Events about these
	// rows were sent rightly.
	rowsLost bool

	mu       sync.Mutex
	told     map[fact]int
	known    map[toldFact]bool
	messages map[string]bool // by webhook-id
	repeated int             // requests with a webhook-id that had arrived before
}

// A fact is the content of an event, or of an item of a batched event. happenedSQL names the
// rows in the same words.
type fact struct {
	kind  hook.Type
	about string
}

// A toldFact is a fact as one event tells it; a repetition has the same sequence.
type toldFact struct {
	fact
	sequence int64
}

// reservationLog keeps a row for every change of a reservation in chaos_reservations.
// The product keeps the last state of a reservation only.
const reservationLog = `
create table chaos_reservations (template_id bigint not null, user_id bigint not null, kind text not null, bits bigint not null);
create function chaos_reservation() returns trigger language plpgsql as $$
declare
    before bigint := case when tg_op <> 'INSERT' then old.slots else 0 end;
    after bigint := case when tg_op <> 'DELETE' then new.slots else 0 end;
begin
    insert into chaos_reservations
    select coalesce(new.template_id, old.template_id), coalesce(new.user_id, old.user_id), kind, bits
    from (values ('reservation.made', after & ~before), ('reservation.cancelled', before & ~after)) as c (kind, bits) where bits <> 0;
    return null;
end $$;
create trigger chaos_reservation after insert or update of slots or delete on reservations for each row execute function chaos_reservation()`

// openShop registers the endpoint and begins to look at the figures.
func openShop(ctx context.Context, t *testing.T, s *stack.Stack) *shopServer {
	k := &shopServer{t: t, stack: s, over: make(chan struct{}), told: map[fact]int{}, known: map[toldFact]bool{}, messages: map[string]bool{}}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	if _, err := s.SQL.Exec(ctx, reservationLog); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SQL.Exec(ctx, `insert into shops (number, name, timezone) values ($1, 'Chaos', 'UTC')`, shopNumber); err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(hook.SealPurpose)
	musttest.OK(t, err)
	service := &hook.Service{Store: workdb.NewHooks(s.DB), Box: box, Insecure: true, Now: time.Now}
	_, secret, err := service.Create(ctx, staff.System(), shopNumber, hook.Input{URL: server.URL, Enabled: true}, "")
	musttest.OK(t, err)
	if k.verify, err = standardwebhooks.NewWebhook(secret); err != nil {
		t.Fatal(err)
	}
	k.looked.Go(k.watch)
	return k
}

// env makes a program send events to an address of this machine.
func (k *shopServer) env() []string { return []string{"EVENTS_INSECURE=on"} }

// ServeHTTP is the endpoint.
func (k *shopServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	var e shopEvent
	if err := k.verify.Verify(body, r.Header); err != nil {
		k.t.Errorf("an event is not signed: %v", err)
	} else if err := json.Unmarshal(body, &e); err != nil {
		k.t.Errorf("an event cannot be read: %v: %s", err, body)
	}
	k.take(r.Header.Get(standardwebhooks.HeaderWebhookID), e.facts())
	w.WriteHeader(http.StatusNoContent)
}

func (k *shopServer) take(message string, facts []toldFact) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.messages[message] {
		k.repeated++
	}
	k.messages[message] = true
	for _, f := range facts {
		if !k.known[f] {
			k.known[f] = true
			k.told[f.fact]++
		}
	}
}

// A shopEvent is an event as a shop reads it.
type shopEvent struct {
	Type     hook.Type
	Sequence int64
	Data     struct {
		TemplateID int64     `json:"template_id,string"`
		CampaignID int64     `json:"campaign_id,string"`
		CouponID   int64     `json:"coupon_id,string"`
		BatchID    int64     `json:"batch_id,string"`
		OpensAt    time.Time `json:"opens_at"`
		Items      []struct {
			UserID    int64 `json:"user_id,string"`
			CouponID  int64 `json:"coupon_id,string"`
			Sequence  int64
			Reminders []struct {
				Channel string
				Minutes int
			}
		}
	}
}

func (e shopEvent) facts() (list []toldFact) {
	tell := func(sequence int64, format string, args ...any) {
		list = append(list, toldFact{fact{e.Type, fmt.Sprintf(format, args...)}, sequence})
	}
	d := e.Data
	switch e.Type {
	case hook.DropOpened:
		tell(0, "drop %d at %d", d.TemplateID, d.OpensAt.Unix())
	case hook.DropPublished, hook.DropMoved, hook.DropSoldOut, hook.DropClosed, hook.DropCancelled:
		tell(e.Sequence, "drop %d", d.TemplateID)
	case hook.CouponLocked, hook.CouponUsed, hook.CouponReleased, hook.CouponRefunded, hook.CouponRevoked, hook.CouponSuspended, hook.CouponRestored:
		tell(e.Sequence, "coupon %d step %d", d.CouponID, e.Sequence)
	case hook.CampaignFinished:
		tell(0, "campaign %d", d.CampaignID)
	}
	for _, i := range d.Items {
		switch e.Type {
		case hook.ReservationMade, hook.ReservationCancelled:
			var bits int64
			for _, r := range i.Reminders {
				c, _ := delivery.ParseChannel(r.Channel)
				bits |= 1 << (12*int(c) + r.Minutes/5 - 1)
			}
			tell(i.Sequence, "drop %d user %d bits %d", d.TemplateID, i.UserID, bits)
		case hook.CouponIssued:
			tell(0, "coupon %d", i.CouponID)
		case hook.CouponExpired:
			tell(i.Sequence, "coupon %d step %d", i.CouponID, i.Sequence)
		case hook.DeliveryDead:
			tell(0, "batch %d user %d", d.BatchID, i.UserID)
		}
	}
	return list
}

// happenedSQL returns the facts that shop $1 must have been told, each with the least number of
// times. It reads them from the rows: the log of coupons, the changes of reservations, and the
// audit log.
const happenedSQL = `
select case step when 'lock' then 'coupon.locked' when 'confirm' then 'coupon.used' when 'refund' then 'coupon.refunded' when 'revoke' then 'coupon.revoked'
        when 'expire' then 'coupon.expired' when 'suspend' then 'coupon.suspended' when 'reinstate' then 'coupon.restored' else 'coupon.released' end, format('coupon %s step %s', coupon_id, id), 1
    from coupon_operations where outcome = 'done' and from_state <> to_state
union all
select 'coupon.issued', format('coupon %s', id), 1 from coupons
union all
select kind, format('drop %s user %s bits %s', template_id, user_id, bits), count(*) from chaos_reservations group by kind, template_id, user_id, bits
union all
select case action when 'template.move' then 'drop.moved' when 'template.close' then 'drop.closed' when 'template.cancel' then 'drop.cancelled' else 'drop.published' end,
        format('drop %s', object_id), count(*)
    from audit where action in ('template.publish', 'template.reopen', 'template.move', 'template.close', 'template.cancel') group by 1, object_id
union all
select 'drop.opened', format('drop %s at %s', id, floor(extract(epoch from opens_at))), 1 from templates
    where state in ('published', 'paused') and opens_at <= clock_timestamp()
union all
select 'drop.sold_out', format('drop %s', id), 1 from templates where state = 'published' and issued >= stock
union all
select 'campaign.finished', format('campaign %s', id), 1 from campaigns where shop_number = $1 and state = 'finished' and settled_at is not null
union all
select 'delivery.dead', format('batch %s user %s', b.id, x.user_id), 1 from exceptions x join batches b on b.id = x.batch_id join templates t on t.id = b.template_id
    where x.outcome = 'dead' and b.state = 'done'`

// unannounced says that the test itself writes reservations of the drop.
func (k *shopServer) unannounced(ctx context.Context, template int64) {
	if _, err := k.stack.SQL.Exec(ctx, `delete from chaos_reservations where template_id = $1`, template); err != nil {
		k.t.Fatal(err)
	}
}

// A hearing compares the facts told by one type of event with the rows.
type hearing struct{ happened, lost, invented int }

// hear returns the hearings by type, and some of the lost or invented facts.
func (k *shopServer) hear(ctx context.Context) (all map[hook.Type]hearing, wrong complaints, err error) {
	rows, err := k.stack.SQL.Query(ctx, happenedSQL, shopNumber)
	if err != nil {
		return nil, wrong, err
	}
	defer rows.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	all = map[hook.Type]hearing{}
	unexplained := maps.Clone(k.told)
	for rows.Next() {
		var f fact
		var n int
		if err := rows.Scan(&f.kind, &f.about, &n); err != nil {
			return nil, wrong, err
		}
		h := all[f.kind]
		h.happened += n
		if missing := n - k.told[f]; missing > 0 {
			h.lost += missing
			wrong.add("%s of %s was told %d times of %d", f.kind, f.about, k.told[f], n)
		}
		unexplained[f] -= n
		all[f.kind] = h
	}
	for f, n := range unexplained {
		switch f.kind {
		// These can have happened more often than the last state of the rows says.
		case hook.DropOpened, hook.DropSoldOut, hook.CampaignFinished, hook.DeliveryDead:
			continue
		}
		if n > 0 && !k.rowsLost {
			h := all[f.kind]
			h.invented += n
			all[f.kind] = h
			wrong.add("%s of %s was told %d times too often", f.kind, f.about, n)
		}
	}
	return all, wrong, rows.Err()
}

// figuresSQL returns the figures that are counted from events and differ from the rows.
const figuresSQL = `
with steps as (
    select c.template_id, count(*) filter (where o.step in ('release', 'timeout')) as released, count(*) filter (where o.step = 'refund') as refunded
    from coupon_operations o join coupons c on c.id = o.coupon_id where o.outcome = 'done' and o.from_state <> o.to_state group by 1
), states as (
    select template_id, count(*) filter (where state = 'locked') as locked, count(*) filter (where state = 'used') as used,
        count(*) filter (where state = 'expired') as expired, count(*) filter (where state = 'revoked') as revoked,
        coalesce(sum(discount) filter (where state = 'used'), 0) as discounted from coupons group by 1
), coupon_figures as (
    select t.id, (coalesce(s.locked, 0), coalesce(s.used, 0), coalesce(s.expired, 0), coalesce(s.revoked, 0), coalesce(s.discounted, 0)::bigint,
            coalesce(o.released, 0), coalesce(o.refunded, 0))::text as counted,
        (coalesce(y.locked, 0), coalesce(y.used, 0), coalesce(y.expired, 0), coalesce(y.revoked, 0), coalesce(y.discounted, 0),
            coalesce(y.released, 0), coalesce(y.refunded, 0))::text as shown
    from templates t left join states s on s.template_id = t.id left join steps o on o.template_id = t.id left join coupon_tallies y on y.template_id = t.id
), bits as (
    select template_id, slots, count(*) as users from reservations where template_id in (select template_id from chaos_reservations) group by 1, 2
), cells as (
    select b.template_id, s.n as slot, c.n as channel, sum(b.users) as booked from bits b, generate_series(1, 12) s (n), generate_series(0, 4) c (n)
    where b.slots & (1::bigint << (12 * c.n + s.n - 1)) <> 0 group by 1, 2, 3
), shown as (
    select * from bookings where template_id in (select template_id from chaos_reservations)
)
select format('drop %s: locked, used, expired, revoked, discounted, released and refunded are shown as %s, the rows say %s', id, shown, counted)
    from coupon_figures where counted <> shown
union all
select format('drop %s: slot %s, channel %s: %s are shown as booked, the rows say %s', template_id, slot, channel, shown.booked, cells.booked)
    from cells full join shown using (template_id, slot, channel) where coalesce(cells.booked, 0) <> coalesce(shown.booked, 0)
union all
select format('drop %s: the curve of reservations ends at %s, the rows say %s', template_id, g.sum, c.sum)
    from (select template_id, sum(booked) as sum from cells group by 1) c
    full join (select template_id, sum(delta) as sum from booking_growth where template_id in (select template_id from chaos_reservations) group by 1) g using (template_id)
    where coalesce(c.sum, 0) <> coalesce(g.sum, 0)`

func (k *shopServer) figures(ctx context.Context) (wrong []string, err error) {
	rows, err := k.stack.SQL.Query(ctx, figuresSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		wrong = append(wrong, text)
	}
	return wrong, rows.Err()
}

// watch repeatedly looks for counters below 0, which can occur for a moment when one event
// overtakes another. It reads the figures of the drops with such counters as the console does:
// no figure is ever negative.
func (k *shopServer) watch() {
	var wrong complaints
	ctx := context.Background() // it ends with over, also in a test that has ended
	repeatedly(ctx, 500*time.Millisecond, k.over, func() {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		rows, err := k.stack.SQL.Query(ctx, `select template_id from coupon_tallies
			where least(locked, used, expired, revoked, discounted, released, refunded) < 0`)
		if err != nil {
			return // the database is away
		}
		var ids []int64
		for id := int64(0); rows.Next() && rows.Scan(&id) == nil; {
			ids = append(ids, id)
		}
		rows.Close()
		for _, id := range ids {
			y, err := couponsdb.NewCouponTallies(k.stack.DB).Tally(ctx, id)
			if err == nil && min(y.Locked, y.Used, y.Expired, y.Revoked, y.Released, y.Refunded, int64(y.Discounted)) < 0 {
				wrong.add("drop %d: a figure is negative: %+v", id, y)
			}
		}
	})
	if wrong.number > 0 {
		k.t.Errorf("%d looks at figures: %v", wrong.number, wrong.first)
	}
}

// close waits until all was told and the figures are right, and says how it went.
func (k *shopServer) close() {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*heardWithin)
	defer cancel()
	var all map[hook.Type]hearing
	var untold complaints
	var off []string
	var err error
	for end := time.Now().Add(heardWithin); ; wait(500*time.Millisecond, ctx.Done()) {
		if all, untold, err = k.hear(ctx); err == nil {
			off, err = k.figures(ctx)
		}
		if err == nil && untold.number+len(off) == 0 || time.Now().After(end) {
			break
		}
	}
	close(k.over)
	k.looked.Wait()
	var cells []any
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		h := all[kind]
		cells = append(cells, kind, fmt.Sprintf("%d, lost %d", h.happened, h.lost))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.t.Logf("the shop's server was told of all that happened, in %d messages, %d of them repeated:\n%s", len(k.messages), k.repeated, table(cells...))
	if err != nil || untold.number > 0 {
		k.t.Errorf("the shop's server and the rows differ in %d facts: %v; %v", untold.number, untold.first, err)
	}
	if len(off) > 0 {
		k.t.Errorf("%d figures differ from the rows: %v", len(off), off[:min(3, len(off))])
	}
}
