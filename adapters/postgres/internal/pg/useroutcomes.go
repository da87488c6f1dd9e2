package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// outcomeSQL returns the batches that contain fired reminders of user $1 for
// templates $2 on channels $3. If $4 names their kinds, it returns announcements
// and notices too. Each owner and channel costs one lookup in the unique index of
// ranges.
const outcomeSQL = `
with owners as (
    select 'reminder' as kind, id, template_id, slot, opens_at, ` + SlotDueAt + ` as due_at, fired_at from slots s
    where template_id = any($2) and fired_at is not null and 'reminder' = any($4)
    union all
    select kind, id, template_id, 0, opens_at, created_at, created_at from announcements
    where template_id = any($2) and state <> 'waiting' and kind = any($4)
    union all
    select 'notice', r.id, r.template_id, 0, n.expires_at, n.due_at, r.created_at from notices n join notice_runs r on r.id = n.run_id
    where n.user_id = $1 and n.template_id = any($2) and 'notice' = any($4)
)
select o.kind, o.id, o.template_id, o.slot, o.opens_at, o.due_at, o.fired_at, c.channel, b.id, b.due, b.sent,
    coalesce(b.rest_outcome, ''), coalesce(b.rest_reason, ''), coalesce(e.outcome, ''), coalesce(e.reason, ''),
    coalesce(e.detail, ''), coalesce(e.attempts, 0), coalesce(e.last_at, b.finished_at, b.started_at, b.created_at), b.messages_upto,
    f.delivered, f.bounced, f.complained, f.soft, coalesce(r.provider, ''), coalesce(r.cause, ''),
    v.names, v.sets, coalesce((select name from providers p where p.id = e.provider_id), '')
from owners o
cross join unnest($3::smallint[]) as c (channel)
cross join lateral (
    select * from batches b where b.kind = o.kind and b.owner_id = o.id and b.channel = c.channel and b.from_user <= $1
    order by b.from_user desc limit 1
) b
left join exceptions e on e.batch_id = b.id and e.user_id = $1
left join batch_feedback f on f.batch_id = b.id
left join feedback_reports r on r.batch_id = b.id and r.user_id = $1
-- The app has no providers, and its inbox is read often.
left join lateral (select array_agg(p.name order by p.id) as names, array_agg(x.users order by p.id) as sets
    from batch_providers x join providers p on p.id = x.provider_id where x.batch_id = b.id and c.channel <> 0) v on true
where b.to_user >= $1
order by o.due_at desc, o.kind, o.id desc, c.channel`

// UserOutcomes returns the outcomes of the user's fired reminders, announcements
// and notices of these kinds, for these templates and channels. The latest due
// time comes first.
func UserOutcomes(ctx context.Context, db *DB, by user.ID, templateIDs []int64, channels []delivery.Channel, kinds ...delivery.Kind) ([]reminder.Delivered, error) {
	var list []reminder.Delivered
	err := db.PlannedTogether(ctx, ReadOutcomes(&list, by, templateIDs, channels, kinds...))
	return list, Translate(err)
}

// ReadOutcomes is the statement of [UserOutcomes]. It adds the outcomes to list.
func ReadOutcomes(list *[]reminder.Delivered, by user.ID, templateIDs []int64, channels []delivery.Channel, kinds ...delivery.Kind) Read {
	cs := make([]int16, len(channels))
	for i, c := range channels {
		cs[i] = int16(c)
	}
	return Read{outcomeSQL, []any{by, templateIDs, cs, kinds}, func(rows pgx.Rows) error {
		for rows.Next() {
			d, mine, err := scanOutcome(rows, by)
			if err != nil {
				return err
			}
			if mine {
				*list = append(*list, d)
			}
		}
		return rows.Err()
	}}
}

// scanOutcome reads one batch and determines the user's outcome in it; mine is
// false if the user is not in the batch.
func scanOutcome(rows pgx.Rows, by user.ID) (d reminder.Delivered, mine bool, err error) {
	var due, sent pgtype.DriverBytes // looked at before the next row
	var reported [4]pgtype.DriverBytes
	var known Recorded
	var names []string
	var sets [][]byte
	if err := rows.Scan(&d.Kind, &d.SlotID, &d.TemplateID, &d.Slot, &d.OpensAt, &d.DueAt, &d.FiredAt, &d.Channel, &d.BatchID, &due, &sent,
		&known.Rest, &known.RestReason, &known.Exception, &known.Reason, &d.Detail, &d.Attempts, &d.At, &d.TextsUpTo,
		&reported[0], &reported[1], &reported[2], &reported[3], &d.Reported.Provider, &d.Reported.Cause,
		&names, &sets, &d.Provider); err != nil {
		return d, false, err
	}
	if mine, err := SetHolds(due, by); err != nil || !mine {
		return d, false, err
	}
	if known.Reached, err = SetHolds(sent, by); err != nil {
		return d, false, err
	}
	if known.Reached {
		if d.Provider, err = tookBy(by, names, sets); err != nil {
			return d, false, err
		}
	}
	if d.Reported.Status, err = ReportedOf(by, [4][]byte{reported[0], reported[1], reported[2], reported[3]}); err != nil {
		return d, false, err
	}
	if d.Outcome, d.Reason = known.Outcome(); d.Outcome == delivery.InFlight {
		d.At = time.Time{}
	}
	return d, true, nil
}

// tookBy returns the name of the provider whose set contains the user. A provider
// with a null set took the messages of all recipients. Empty = the default
// provider of the environment.
func tookBy(by user.ID, names []string, sets [][]byte) (string, error) {
	for i, name := range names {
		if sets[i] == nil {
			return name, nil
		}
		if took, err := SetHolds(sets[i], by); took || err != nil {
			return name, err
		}
	}
	return "", nil
}
