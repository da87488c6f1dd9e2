package delivery

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// consentsTakenSQL returns whether another batch of the same drop, slot and channel is being
// delivered to users of the range. This happens after the opening was moved.
const consentsTakenSQL = `
with running as materialized (
    select owner_id from batches where state = 'running' and kind = 'reminder' and template_id = @template and channel = @channel
        and id <> @batch and owner_id <> @owner and from_user <= @to and to_user >= @from
)
select exists (select from running r join slots s on s.id = r.owner_id where s.slot = @slot)`

// consentsSQL returns the users among @users who have consented to the reminder of the slot.
const consentsSQL = `
select user_id from reservations
where template_id = @template and user_id = any(@users) and consents & (1 << (@slot::int - 1)) <> 0`

// Consents returns the users who have consented to the reminder; see [delivery.Store].
func (s Batches) Consents(ctx context.Context, b *delivery.Batch, ids []user.ID) (map[user.ID]bool, error) {
	held := map[user.ID]bool{}
	if len(ids) == 0 {
		return held, nil
	}
	args := pgx.StrictNamedArgs{"template": b.Subject.TemplateID, "channel": b.Channel, "batch": b.ID, "owner": b.Owner,
		"from": ids[0], "to": ids[len(ids)-1], "slot": b.Subject.Slot}
	var taken bool
	if err := s.Pool.QueryRow(ctx, consentsTakenSQL, args).Scan(&taken); err != nil {
		return nil, pg.Translate(err)
	}
	if taken {
		return nil, delivery.ErrConsentsTaken
	}
	rows := pg.Rows(ctx, s.Pool, consentsSQL, pgx.StrictNamedArgs{"template": b.Subject.TemplateID, "users": ids, "slot": b.Subject.Slot})
	var id user.ID
	_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		held[id] = true
		return nil
	})
	return held, pg.Translate(err)
}

// removingConsents removes the consents that messages of mine have used. Consents of a user
// for several slots are removed together, since a statement updates a row only once. The
// arrays have one element for each message. Rows are locked in the same order as in a
// reservation.
const removingConsents = `used as (
    select r.template_id, r.user_id, c.slot
    from mine m join unnest(@c_batches::bigint[], @c_users::bigint[], @c_slots::int[]) as c (batch_id, user_id, slot) on c.batch_id = m.id
    join reservations r on r.template_id = m.template_id and r.user_id = c.user_id
    where r.consents & (1 << (c.slot - 1)) <> 0
    order by r.template_id, r.user_id for update of r
), consented as (
    update reservations r set consents = nullif(r.consents & ~u.bits, 0)::smallint
    from (select template_id, user_id, bit_or(1 << (slot - 1)) as bits from used group by template_id, user_id) u
    where r.template_id = u.template_id and r.user_id = u.user_id
)`

// consentArgs are the parameters of removingConsents.
func consentArgs(list []checkpoint) pgx.StrictNamedArgs {
	var batches, users []int64
	var slots []int32
	for _, c := range list {
		if c.slot == 0 {
			continue
		}
		for _, id := range c.ConsentsUsed {
			batches, users, slots = append(batches, c.batch), append(users, int64(id)), append(slots, int32(c.slot))
		}
	}
	return pgx.StrictNamedArgs{"c_batches": batches, "c_users": users, "c_slots": slots}
}
