package reminder_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

var (
	opens = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	early = opens.Add(-3 * time.Hour)
)

// memory is a store that keeps the contract for one user at a time; now is its clock.
type memory struct {
	rows    map[int64]reminder.Bitmap
	done    []reminder.Delivered
	changes []reminder.Change
	ended   []error // of the contexts of its writes
	now     time.Time
	fail    error
	given   reminder.Consents
}

func (m *memory) open() reminder.Bitmap {
	var b reminder.Bitmap
	for _, s := range template.AllSlots() {
		if s.DueAt(opens).After(m.now) {
			b = b.Union(reminder.SlotMask(s))
		}
	}
	return b
}

func (m *memory) Reserve(ctx context.Context, c reminder.Change) (reminder.Decision, error) {
	m.changes, m.ended = append(m.changes, c), append(m.ended, ctx.Err())
	before, existed := m.rows[c.TemplateID]
	v := reminder.Decision{Before: before, Open: m.open(), Opened: !m.now.Before(opens)}
	if m.fail != nil || !v.Open.Contains(c.Bits) || !before.Intersect(c.Bits).IsEmpty() {
		return v, m.fail
	}
	m.rows[c.TemplateID] = before.Union(c.Bits)
	return reminder.Decision{Applied: true, Created: !existed, After: m.rows[c.TemplateID]}, nil
}

func (m *memory) Cancel(ctx context.Context, c reminder.Change) (reminder.Decision, error) {
	m.changes, m.ended = append(m.changes, c), append(m.ended, ctx.Err())
	before := m.rows[c.TemplateID]
	bits := c.Bits
	if bits.IsEmpty() {
		bits = before.Intersect(m.open())
	}
	if c.Possible {
		bits = before.Intersect(m.open()).Intersect(c.Bits)
	}
	if m.fail != nil || bits.IsEmpty() || !before.Contains(bits) || !m.open().Contains(bits) {
		return reminder.Decision{Before: before, Open: m.open()}, m.fail
	}
	m.rows[c.TemplateID] = before.Without(bits)
	return reminder.Decision{Applied: true, After: m.rows[c.TemplateID]}, nil
}

func (m *memory) Reservation(_ context.Context, id int64, by user.ID) (reminder.Reservation, error) {
	if m.rows[id].IsEmpty() {
		return reminder.Reservation{}, reminder.ErrNotReserved
	}
	return reminder.Reservation{TemplateID: id, UserID: by, Slots: m.rows[id]}, nil
}

func (m *memory) SetConsent(ctx context.Context, id int64, by user.ID, s template.Slot, given bool) (reminder.Reservation, error) {
	m.ended = append(m.ended, ctx.Err())
	r, err := m.Reservation(ctx, id, by)
	if m.given &^= 1 << (s - 1); given {
		m.given |= 1 << (s - 1)
	}
	r.Consents = m.given
	return r, err
}

func (m *memory) Reservations(_ context.Context, by user.ID, _ int64, _ int) ([]reminder.Reservation, error) {
	var list []reminder.Reservation
	for id, b := range m.rows {
		list = append(list, reminder.Reservation{TemplateID: id, UserID: by, Slots: b})
	}
	slices.SortFunc(list, func(a, b reminder.Reservation) int { return int(b.TemplateID - a.TemplateID) })
	return list, nil
}

func (m *memory) Delivered(context.Context, user.ID, []int64) ([]reminder.Delivered, error) {
	return m.done, nil
}

type catalogue map[int64]template.Template

func (c catalogue) Template(_ context.Context, id int64) (template.Template, error) {
	if t, ok := c[id]; ok {
		return t, nil
	}
	return template.Template{}, template.ErrNotFound
}

// newService returns a service at an instant. Template 1 is open for reservations; templates 2, 3
// and 4 are a draft, closed and cancelled. Only app and email have senders.
func newService(now time.Time) (*reminder.Service, *memory) {
	m := &memory{rows: map[int64]reminder.Bitmap{}, now: now}
	c := catalogue{}
	for id, state := range map[int64]template.State{1: template.Published, 2: template.Draft, 3: template.Closed, 4: template.Cancelled, 5: template.Paused} {
		c[id] = template.Template{ID: id, Stored: state, Spec: template.Spec{ShopNumber: 10, Name: "Half price", Stock: 1,
			OpensAt: opens, ClosesAt: opens.Add(time.Hour)}}
	}
	return &reminder.Service{Store: m, Templates: c, Channels: delivery.ChannelSetOf(delivery.App, delivery.Email),
		Now: func() time.Time { return now }}, m
}

func ask(templateID, shop int64, rs ...reminder.Reminder) reminder.Request {
	return reminder.Request{TemplateID: templateID, UserID: 7, ShopNumber: shop, Reminders: rs}
}

func on(c delivery.Channel, minutes ...int) []reminder.Reminder {
	var list []reminder.Reminder
	for _, n := range minutes {
		r, err := reminder.NewReminder(c, n)
		if err != nil {
			panic(err)
		}
		list = append(list, r)
	}
	return list
}

func TestReserveIsRefused(t *testing.T) {
	app5, app10, sms5 := on(delivery.App, 5), on(delivery.App, 10), on(delivery.SMS, 5, 60)
	for name, c := range map[string]struct {
		at        time.Time
		request   reminder.Request
		want      *fault.Fault
		offending []reminder.Reminder
		field     string
		asks      bool // whether the store must be the judge
	}{
		"unknown template":       {early, ask(99, 10, app5...), template.ErrNotFound, nil, "", false},
		"draft":                  {early, ask(2, 10, app5...), template.ErrNotFound, nil, "", false},
		"closed":                 {early, ask(3, 10, app5...), template.ErrNotOpen, nil, "", false},
		"cancelled":              {early, ask(4, 10, app5...), template.ErrNotOpen, nil, "", false},
		"after the opening":      {opens, ask(1, 10, app5...), template.ErrOpened, nil, "", false},
		"after the end":          {opens.Add(time.Hour), ask(1, 10, app5...), template.ErrNotOpen, nil, "", false},
		"another shop":           {early, ask(1, 11, app5...), fault.ErrInvalid, nil, "shop_number", false},
		"no reminder":            {early, ask(1, 10), fault.ErrInvalid, nil, "reminders", false},
		"one reminder twice":     {early, ask(1, 10, app5[0], app5[0]), fault.ErrInvalid, nil, "reminders[1]", false},
		"channel without sender": {early, ask(1, 10, sms5[0], app5[0], sms5[1]), delivery.ErrChannelUnavailable, []reminder.Reminder{sms5[1], sms5[0]}, "", false},
		"due":                    {opens.Add(-5 * time.Minute), ask(1, 10, app5...), reminder.ErrAlreadyDue, app5, "", true},
		"one of two due":         {opens.Add(-7 * time.Minute), ask(1, 10, app5[0], app10[0]), reminder.ErrAlreadyDue, app10, "", true},
		"reserved already":       {early, ask(5, 10, on(delivery.App, 60)...), reminder.ErrAlreadyReserved, on(delivery.App, 60), "", true},
	} {
		s, m := newService(c.at)
		m.rows[5] = reminder.BitmapOf(on(delivery.App, 60)...)
		_, created, err := s.Reserve(t.Context(), c.request)
		if !errors.Is(err, c.want) || fault.CodeOf(err) != c.want.Code || created {
			t.Errorf("%s: %v, want %s", name, err, c.want.Code)
		}
		if r, ok := errors.AsType[*reminder.Refusal](err); ok != (c.offending != nil) || ok && !slices.Equal(r.Offending, c.offending) {
			t.Errorf("%s: %+v, want %v", name, err, c.offending)
		}
		if f, ok := errors.AsType[*fault.Fields](err); ok != (c.field != "") || ok && f.List[0].Name != c.field {
			t.Errorf("%s: %v, want field %q", name, err, c.field)
		}
		if c.asks != (len(m.changes) == 1) || len(m.rows) != 1 || m.rows[5].Len() != 1 {
			t.Errorf("%s: asked the store %d times and left %v", name, len(m.changes), m.rows)
		}
	}
}

// TestTheDatabaseIsTheJudge: whether the service's clock is ahead or behind, the store's decision
// holds.
func TestTheDatabaseIsTheJudge(t *testing.T) {
	s, m := newService(early)
	m.now = opens // the service believes that hours are left
	if _, _, err := s.Reserve(t.Context(), ask(1, 10, on(delivery.App, 5)...)); !errors.Is(err, template.ErrOpened) {
		t.Errorf("%v", err)
	}
	s, m = newService(opens.Add(-time.Minute)) // the service believes that everything is due
	m.now = early
	if v, created, err := s.Reserve(t.Context(), ask(1, 10, on(delivery.App, 5)...)); err != nil || !created || v.Slots.Int64() != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

func TestReserveAnswersWithTheWholeReservation(t *testing.T) {
	s, _ := newService(early)
	v, created, err := s.Reserve(t.Context(), ask(1, 10, on(delivery.App, 10)...))
	if err != nil || !created || v.Slots.String() != "2" || v.TemplateName != "Half price" || v.ShopNumber != 10 || !v.OpensAt.Equal(opens) {
		t.Fatalf("%+v %v %v", v, created, err)
	}
	v, created, err = s.Reserve(t.Context(), ask(1, 10, slices.Concat(on(delivery.Email, 20, 60), on(delivery.App, 60))...))
	if err != nil || created || v.UserID != 7 || v.TemplateID != 1 {
		t.Fatalf("%+v %v %v", v, created, err)
	}
	var got []reminder.Reminder
	for _, it := range v.Items {
		got = append(got, it.Reminder)
		if it.State != "waiting" || !it.DueAt.Equal(it.Reminder.DueAt(opens)) || it.Reason != "" {
			t.Errorf("%+v", it)
		}
	}
	want := slices.Concat(on(delivery.App, 60), on(delivery.Email, 60), on(delivery.Email, 20), on(delivery.App, 10))
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func TestWritesOutliveTheirCaller(t *testing.T) {
	s, m := newService(early)
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, _, err := s.Reserve(ctx, ask(1, 10, on(delivery.App, 5)...)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cancel(ctx, 7, 1, nil); err != nil {
		t.Fatal(err)
	}
	for i, err := range m.ended {
		if err != nil {
			t.Errorf("write %d is dropped when its caller hangs up", i)
		}
	}
}

func TestStoreFailuresArePassedOn(t *testing.T) {
	s, m := newService(early)
	m.fail = fault.New(fault.Unavailable, "overloaded", "later")
	if _, _, err := s.Reserve(t.Context(), ask(1, 10, on(delivery.App, 5)...)); !errors.Is(err, m.fail) {
		t.Errorf("reserve: %v", err)
	}
	if _, err := s.Cancel(t.Context(), 7, 1, nil); !errors.Is(err, m.fail) {
		t.Errorf("cancel: %v", err)
	}
}

func TestCancel(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Time
		id   int64
		rs   []reminder.Reminder
		want *fault.Fault
		left string
	}{
		"one":                  {early, 1, on(delivery.App, 60), nil, "3"},
		"several":              {early, 1, on(delivery.App, 5, 10), nil, "2048"},
		"all":                  {early, 1, nil, nil, "0"},
		"all that is not due":  {opens.Add(-time.Hour), 1, nil, nil, "2048"},
		"of a closed template": {early, 3, nil, nil, "0"},
		"of a cancelled one":   {early, 4, on(delivery.App, 60), nil, "3"},
		"not reserved":         {early, 1, on(delivery.Email, 60), reminder.ErrNotReserved, "2051"},
		"one of two missing":   {early, 1, slices.Concat(on(delivery.App, 60), on(delivery.Email, 60)), reminder.ErrNotReserved, "2051"},
		"due":                  {opens.Add(-time.Hour), 1, on(delivery.App, 60), reminder.ErrAlreadyDue, "2051"},
		"all, all due":         {opens.Add(-5 * time.Minute), 1, nil, reminder.ErrAlreadyDue, "2051"},
		"nothing reserved":     {early, 5, nil, reminder.ErrNotReserved, "0"},
		"unknown template":     {early, 99, nil, template.ErrNotFound, "0"},
	} {
		s, m := newService(c.at)
		for _, id := range []int64{1, 3, 4} {
			m.rows[id] = reminder.BitmapOf(on(delivery.App, 5, 10, 60)...)
		}
		v, err := s.Cancel(t.Context(), 7, c.id, c.rs)
		if c.want == nil && (err != nil || v.Slots.String() != c.left || len(v.Items) != v.Slots.Len() || v.Items == nil) {
			t.Errorf("%s: %+v %v", name, v, err)
		}
		if c.want != nil && (!errors.Is(err, c.want) || fault.CodeOf(err) != c.want.Code) {
			t.Errorf("%s: %v, want %s", name, err, c.want.Code)
		}
		if m.rows[c.id].String() != c.left {
			t.Errorf("%s: left %s, want %s", name, m.rows[c.id], c.left)
		}
	}
}

func TestStatesOfAView(t *testing.T) {
	now := opens.Add(-20 * time.Minute) // 20 minutes is due at this very instant
	s, m := newService(now)
	m.rows[1] = reminder.BitmapOf(slices.Concat(on(delivery.App, 5, 20, 25, 30, 35, 40, 45, 50), on(delivery.Email, 30))...)
	outcome := func(minutes int, o delivery.Outcome, reason string) reminder.Delivered {
		return reminder.Delivered{TemplateID: 1, Slot: template.Slot(minutes / 5), Channel: delivery.App, OpensAt: opens, Outcome: o, Reason: reason}
	}
	moved := outcome(5, delivery.Sent, "")
	moved.OpensAt = opens.Add(-time.Hour) // of the opening before it moved
	other := outcome(5, delivery.Sent, "")
	other.TemplateID = 3
	m.done = []reminder.Delivered{outcome(25, delivery.InFlight, ""), outcome(30, delivery.Recovered, "provider_error"),
		outcome(35, delivery.Sent, ""), outcome(40, delivery.Dead, "attempts_used_up"), outcome(45, delivery.Expired, "deadline"),
		outcome(50, delivery.Skipped, "no_contact"), moved, other}
	v, err := s.Reservation(t.Context(), 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		channel       delivery.Channel
		minutes       int
		state, reason string
	}
	var got []row
	for _, it := range v.Items {
		got = append(got, row{it.Channel, it.Slot.Minutes(), it.State, it.Reason})
	}
	want := []row{{delivery.App, 50, "skipped", "no_contact"}, {delivery.App, 45, "expired", "deadline"}, {delivery.App, 40, "dead", "attempts_used_up"},
		{delivery.App, 35, "sent", ""}, {delivery.App, 30, "sent", "provider_error"}, {delivery.Email, 30, "due", ""},
		{delivery.App, 25, "in_flight", ""}, {delivery.App, 20, "due", ""}, {delivery.App, 5, "waiting", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
}

func TestReservationsListEveryTemplate(t *testing.T) {
	s, m := newService(early)
	if list, err := s.Reservations(t.Context(), 7, 0, 10); err != nil || len(list) != 0 {
		t.Errorf("nothing reserved: %v %v", list, err)
	}
	m.rows[1], m.rows[4] = reminder.BitmapOf(on(delivery.App, 5)...), reminder.BitmapOf(on(delivery.Email, 10)...)
	list, err := s.Reservations(t.Context(), 7, 0, 10)
	if err != nil || len(list) != 2 || list[0].TemplateID != 4 || list[1].TemplateID != 1 || list[0].Items[0].Channel != delivery.Email {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := s.Reservation(t.Context(), 7, 5); !errors.Is(err, reminder.ErrNotReserved) {
		t.Errorf("%v", err)
	}
	if _, err := s.Reservation(t.Context(), 7, 99); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
