package drops

import (
	"context"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// prepare finds the ranges that existing batches cover, and divides the
// template's users into parts.
func (s Slots) prepare(ctx context.Context, cut *reminder.Cut) (err error) {
	if cut.Covered, err = pg.Covered(ctx, s.DB, delivery.KindReminder, cut.ID); err != nil {
		return err
	}
	var first, last int64
	err = s.Pool.QueryRow(ctx, `select (select remind_once from templates where id = $1),
		coalesce((select user_id from reservations where template_id = $1 order by user_id limit 1), 1),
		coalesce((select user_id from reservations where template_id = $1 order by user_id desc limit 1), 0),
		coalesce((select sum(booked) from bookings where template_id = $1 and slot = $2), 0)`,
		cut.TemplateID, cut.Slot.Slot).Scan(&cut.RemindOnce, &first, &last, &cut.Expected)
	cut.Parts = pg.Divide(first, last, cut.Expected)
	return pg.Translate(err)
}

// ReadDue reads the users who are due in the part; see [reminder.FiringStore].
func (s Slots) ReadDue(ctx context.Context, cut reminder.Cut, part delivery.Range) (reminder.Due, error) {
	// The twelve bits between two channels are squeezed out by the client.
	due, err := pg.ReadUsers(ctx, s.DB, `select user_id, (slots >> $2::int) & $3 from reservations
		where template_id = $1 and user_id between $4 and $5 and slots & ($3::bigint << $2::int) <> 0`,
		cut.TemplateID, int64(cut.Slot.Slot)-1, reminder.EveryChannel, part.From, part.To)
	if err != nil {
		return due, err
	}
	if cut.Round > 0 || cut.RemindOnce {
		if err := s.leaveOut(ctx, cut.ID, part, &due); err != nil {
			return due, err
		}
	}
	return due, ofDoors(ctx, s.Doors, cut.TemplateID, cut.Doors, &due)
}

// ofDoors leaves in due the users who come through one of the doors.
func ofDoors(ctx context.Context, judge reminder.DoorJudge, templateID int64, doors template.DoorSet, due *reminder.Due) error {
	if doors == template.AllDoors {
		return nil
	}
	all := roaring64.New()
	for _, ids := range due {
		for _, id := range ids {
			all.Add(uint64(id))
		}
	}
	users := make([]user.ID, 0, all.GetCardinality())
	for it := all.Iterator(); it.HasNext(); {
		users = append(users, user.ID(it.Next()))
	}
	places, err := judge.Places(ctx, templateID, users)
	if err != nil {
		return err
	}
	for i, id := range users {
		if !doors.Has(int(places[i])) {
			all.Remove(uint64(id))
		}
	}
	for c := range due {
		due[c] = slices.DeleteFunc(due[c], func(id user.ID) bool { return !all.Contains(uint64(id)) })
	}
	return nil
}

// leaveOut removes from due the users whom the slots of [sentBefore] have
// handled. In an earlier round these are all users of batches that were sent to
// their end; their dead letters can still be replayed. In batches that a move
// stopped, and in batches of another opening, these are only the users who were
// reached.
func (s Slots) leaveOut(ctx context.Context, slotID int64, part delivery.Range, due *reminder.Due) error {
	rows := pg.Rows(ctx, s.Pool, `select b.channel, case when b.stop_reason is null and o.opens_at = s.opens_at then b.due else b.sent end
		from slots s join slots o on `+sentBefore+` join batches b on b.kind = 'reminder' and b.owner_id = o.id
		where s.id = $1 and b.from_user <= $3 and b.to_user >= $2`, slotID, part.From, part.To)
	var dealtWith [delivery.Channels]roaring64.Bitmap
	var c delivery.Channel
	var stored []byte
	if _, err := pgx.ForEachRow(rows, []any{&c, &stored}, func() error {
		set, err := pg.DecodeSet(stored)
		if err == nil {
			dealtWith[c].Or(set)
		}
		return err
	}); err != nil {
		return pg.Translate(err)
	}
	for c := range due {
		due[c] = slices.DeleteFunc(due[c], func(id user.ID) bool { return dealtWith[c].Contains(uint64(id)) })
	}
	return nil
}

// storeRemindersSQL returns the ids of the new batches in their order. It returns
// no rows if the lease for cutting was lost.
const storeRemindersSQL = `
with mine as (
    update slots set cut_lease_until = clock_timestamp() + interval '10 seconds'
    where id = @owner and cut_token = @token and state = 'firing'
    returning id, template_id, due_at - round * interval '1 microsecond' as due_at, planned_at, opens_at, stop_reason
)
insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at, planned_at,
    worthless_after, stop_reason, next_run_at)
select 'reminder', m.id, m.template_id, b.channel, b.from_user, b.to_user, b.n, b.due, m.due_at, m.planned_at,
    m.opens_at, m.stop_reason, clock_timestamp()
from mine m, unnest(@channels::smallint[], @from_users::bigint[], @to_users::bigint[], @due_counts::int[], @dues::bytea[])
    with ordinality as b (channel, from_user, to_user, n, due, i)
order by b.i
returning id`

// StoreBatches stores batches; see [reminder.FiringStore]. If the slot was
// stopped before, the batches are stored as stopped.
func (s Slots) StoreBatches(ctx context.Context, cut reminder.Cut, bs []reminder.NewBatch) ([]int64, error) {
	args, err := pg.BatchArgs(bs)
	if err != nil {
		return nil, err
	}
	args["owner"], args["token"] = cut.ID, cut.Token
	return pg.StoreBatches(ctx, s.DB, storeRemindersSQL, args)
}

// KeepFiring renews the lease for cutting; see [reminder.FiringStore].
func (s Slots) KeepFiring(ctx context.Context, cut reminder.Cut, lasting time.Duration) error {
	return pg.KeepCut(ctx, s.DB, `update slots set cut_lease_until = clock_timestamp() + $3::interval
		where id = $1 and cut_token = $2 and state = 'firing'`, cut.ID, cut.Token, lasting)
}
