package stack

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Bit returns the bit of the five-minute reminder on the channel. [Stack.FireSoon] makes this
// reminder due.
func Bit(c delivery.Channel) int64 { return 1 << (template.Slots * int(c)) }

// Empty removes the reservations and deliveries of earlier repetitions.
func (s *Stack) Empty(ctx context.Context) error {
	_, err := s.SQL.Exec(ctx, `truncate reservations, bookings, batches, exceptions cascade`)
	return err
}

// Ahead returns how long before its instant a slot with n reminders must be moved. The move
// makes the template's earlier slots overdue. By the instant, the worker must have read n rows
// for each of these slots, which have no recipients.
func Ahead(n int) time.Duration { return 4*time.Second + time.Duration(n/250)*time.Millisecond }

// FireSoon moves the opening so that the five-minute slot is due after about the given time. The
// slot fires by its timer as usual.
func (s *Stack) FireSoon(ctx context.Context, t template.Template, after time.Duration) error {
	spec := t.Spec
	spec.OpensAt = time.Now().Add(5*time.Minute + after).Truncate(time.Second)
	service := &template.Service{Store: dropsdb.NewTemplates(s.DB), Now: time.Now}
	_, err := service.Edit(ctx, staff.System(), t.ID, template.Edition{Version: t.Version, Spec: spec})
	return err
}

// WaitFinished waits until each recipient of the moved five-minute slot has an
// outcome.
func (s *Stack) WaitFinished(ctx context.Context, templateID int64) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return Until(ctx, 200*time.Millisecond, func() (bool, error) {
		var done bool
		err := s.SQL.QueryRow(ctx, `select exists (select from slots s join templates t on t.id = s.template_id
			where t.id = $1 and s.opens_at = t.opens_at and s.slot = 1 and s.state = 'finished')`, templateID).Scan(&done)
		return done, err
	})
}

// Until calls check each period until it returns true, fails, or ctx ends.
func Until(ctx context.Context, period time.Duration, check func() (bool, error)) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		if done, err := check(); err != nil || done {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain: %w", ctx.Err())
		}
	}
}

// Lateness is how long after the due instant batches were recorded, weighted by batch, and how
// many recipients were sent.
type Lateness struct {
	Sent                  int
	First, P50, P99, Last time.Duration
}

// Lateness reads the batches of the template's five-minute slot. It fails unless n recipients
// were sent.
func (s *Stack) Lateness(ctx context.Context, templateID int64, n int) (l Lateness, err error) {
	err = s.SQL.QueryRow(ctx, `
		with b as (select b.finished_at - b.due_at as late, sent_count from batches b
			join slots s on b.kind = 'reminder' and s.id = b.owner_id where b.template_id = $1 and s.slot = 1)
		select coalesce(sum(sent_count), 0), min(late), percentile_disc(0.5) within group (order by late),
			percentile_disc(0.99) within group (order by late), max(late) from b`, templateID).
		Scan(&l.Sent, &l.First, &l.P50, &l.P99, &l.Last)
	if err == nil && l.Sent != n {
		err = fmt.Errorf("%d of %d were sent", l.Sent, n)
	}
	return l, err
}

// Users makes users 1…n known, with an address each, in two languages and zones.
func (s *Stack) Users(ctx context.Context, n int) error {
	if _, err := s.SQL.Exec(ctx, `truncate users cascade`); err != nil {
		return err
	}
	locales, zones := []string{"en", "zh-CN"}, []string{"Europe/Berlin", "Asia/Shanghai"}
	_, err := s.SQL.CopyFrom(ctx, pgx.Identifier{"users"}, []string{"id", "name", "email", "locale", "timezone"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			id := strconv.Itoa(i + 1)
			return []any{int64(i + 1), "User " + id, Address(i + 1), locales[i%2], zones[i%2]}, nil
		}))
	if err == nil {
		_, err = s.SQL.Exec(ctx, `vacuum (analyze) users`)
	}
	return err
}

// addressee begins the local part of every address; see [Address].
const addressee = "user-"

// Address is the mail address of user id.
func Address(id int) string { return addressee + strconv.Itoa(id) + "@bench.example" }

// UserOf returns the user with the address, 0 if there is none.
func UserOf(address string) int {
	local, _, _ := strings.Cut(strings.TrimPrefix(address, addressee), "@")
	id, _ := strconv.Atoi(local)
	return id
}

// WaitFiring waits until the moved five-minute slot has begun to fire.
func (s *Stack) WaitFiring(ctx context.Context, templateID int64) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return Until(ctx, 20*time.Millisecond, func() (bool, error) {
		var fired bool
		err := s.SQL.QueryRow(ctx, `select exists (select from slots s join templates t on t.id = s.template_id
			where t.id = $1 and s.opens_at = t.opens_at and s.slot = 1 and s.fired_at is not null)`, templateID).Scan(&fired)
		return fired, err
	})
}
