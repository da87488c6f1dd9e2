package work

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// DeadMessages stores events that handlers gave up on. Operators can read them, send them again
// or discard them.
type DeadMessages struct{ *pg.DB }

// NewDeadMessages returns the dead messages of db.
func NewDeadMessages(db *pg.DB) DeadMessages { return DeadMessages{db} }

// Keep stores a message once per handler, whatever its content: a message that cannot be stored
// would be delivered without end.
func (s DeadMessages) Keep(ctx context.Context, m staff.DeadMessage) error {
	return pg.KeepDeadMessage(ctx, s.DB, m)
}

// Open lists messages that were neither replayed nor discarded, newest first, with ids below
// before (0 = from the newest message).
func (s DeadMessages) Open(ctx context.Context, before int64, limit int) ([]staff.DeadMessage, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[staff.DeadMessage], `select id, message_id, topic, handler, reason, payload, at from dead_messages
		where requeued_at is null and discarded_at is null and ($1::bigint = 0 or id < $1) order by id desc limit $2`, before, limit)
}

// Requeue publishes the message again through the outbox. Handlers that handled the message the
// first time recognise it.
func (s DeadMessages) Requeue(ctx context.Context, by staff.Actor, id int64) error {
	return s.settle(ctx, by, id, "requeue", `
		with m as (update dead_messages set requeued_at = now() where id = $1 and requeued_at is null and discarded_at is null returning *)
		insert into outbox (event_id, topic, payload)
		select case when message_id ~ '^[0-9a-f-]{36}$' then message_id::uuid else gen_random_uuid() end,
			topic, convert_from(payload, 'UTF8')::jsonb from m`)
}

// Discard gives the message up.
func (s DeadMessages) Discard(ctx context.Context, by staff.Actor, id int64) error {
	return s.settle(ctx, by, id, "discard", `update dead_messages set discarded_at = now() where id = $1 and requeued_at is null and discarded_at is null`)
}

func (s DeadMessages) settle(ctx context.Context, by staff.Actor, id int64, action, sql string) error {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, staff.ErrNoDeadMessage, sql, id); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, staff.Entry{Actor: by, Action: "dead_message." + action, ObjectKind: "dead_message", ObjectID: pg.Itoa(id)})
	})
	if pg.RefusedData(errors.Unwrap(err)) || pg.RefusedData(err) {
		return fault.ErrInvalid.Because("this message's content is not an event and cannot be sent again; discard it")
	}
	return err
}
