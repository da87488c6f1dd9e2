package drops

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/rehearsal"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/killpoint"
	"dropbell/migrations"
)

// A rehearsal happens in a schema of its own, with all tables of this version. Stores name no schema, so a pool whose
// search_path is that schema alone makes them work there, and none of their statements can reach the tables of the
// real drops.

// WorldSchema returns the name of the schema of a rehearsal.
func WorldSchema(id int64) string { return fmt.Sprintf("rehearsal_%d", id) }

// WorldURL returns the address of the database with the schema of the rehearsal alone in its search path.
func WorldURL(url string, id int64) string {
	param := "search_path=" + WorldSchema(id)
	switch {
	case !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://"):
		return url + " " + param
	case strings.Contains(url, "?"):
		return url + "&" + param
	}
	return url + "?" + param
}

// MakeWorld makes the schema of the rehearsal with empty tables. url must lead to sessions of the server.
func (s Rehearsals) MakeWorld(ctx context.Context, url string, id int64) error {
	if err := s.at(ctx, "rehearsal.schema", `create schema `+pgx.Identifier{WorldSchema(id)}.Sanitize()); err != nil {
		return err
	}
	if err := keepsTo(ctx, WorldURL(url, id), WorldSchema(id)); err != nil {
		return err
	}
	return killpoint.Around("rehearsal.tables", func() error { return migrations.Up(ctx, WorldURL(url, id)) })
}

// keepsTo returns an error unless sessions at url are in the schema. Behind a pooler that ignores search_path the migrations
// would otherwise reach the tables of real drops.
func keepsTo(ctx context.Context, url, schema string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return pg.Translate(err)
	}
	defer conn.Close(ctx)
	var in string
	if err := conn.QueryRow(ctx, `select coalesce(current_schema(), '')`).Scan(&in); err != nil {
		return pg.Translate(err)
	}
	if in != schema {
		return fmt.Errorf("a session of the rehearsal is in the schema %q and not in %s; set DATABASE_SESSION_URL to the address of the server itself", in, schema)
	}
	return nil
}

// DropWorld removes the schema of the rehearsal and everything in it, if it is there.
func (s Rehearsals) DropWorld(ctx context.Context, id int64) error {
	for {
		var tables *string
		if err := s.Pool.QueryRow(ctx, `select string_agg(format('%I.%I', schemaname, tablename), ', ') from (select schemaname, tablename from pg_tables where schemaname = $1 order by tablename limit $2) t`,
			WorldSchema(id), droppedAtOnce).Scan(&tables); err != nil {
			return pg.Translate(err)
		}
		if tables == nil {
			break
		}
		if err := s.at(ctx, "rehearsal.drop_tables", `drop table if exists `+*tables+` cascade`); err != nil {
			return err
		}
	}
	return s.at(ctx, "rehearsal.drop_schema", `drop schema if exists `+pgx.Identifier{WorldSchema(id)}.Sanitize()+` cascade`)
}

// at executes a statement at a point.
func (s Rehearsals) at(ctx context.Context, point, sql string, args ...any) error {
	return killpoint.Around(point, func() error {
		_, err := s.Pool.Exec(ctx, sql, args...)
		return pg.Translate(err)
	})
}

// droppedAtOnce bounds the locks that one statement of DropWorld takes.
const droppedAtOnce = 20

// Schema returns the schema that the statements of db use.
func (s Rehearsals) Schema(ctx context.Context) (name string, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(current_schema(), '')`).Scan(&name)
	return name, pg.Translate(err)
}

// copied is a table of which rows are copied: the condition for the rows t, and the columns that get another value.
type copied struct {
	table, where string
	instead      map[string]string
}

// copiesOf are the tables of a drop that are copied. Contacts of users are replaced by made-up ones that no provider
// knows, so that a user is reached over the same channels, and nothing about a person is copied but the number, language and time zone.
var copiesOf = []copied{
	{"shops", `t.number = @shop`, nil},
	{"templates", `t.id = @drop`, map[string]string{
		"id": `@id`, "state": `'draft'`, "opens_at": `date_trunc('second', clock_timestamp()) + interval '1 hour'`, "closes_at": `date_trunc('second', clock_timestamp()) + interval '2 hours'`, "valid_until": `null`, "valid_hours": `greatest(t.valid_hours, 24)`,
		"stock": `greatest(1, t.stock * @share / 1000)`, "issued": `0`, "returned": `0`, "held": `0`, "version": `1`, "request_key": `null`, "published_at": `null`, "ended_at": `null`,
		"protection": `'off'`, "doors": `0`, "door_base": `0`, "entry_minutes": `case t.opening_mode when 'shuffled' then 1 else 0 end`,
		"draw_source": `case t.opening_mode when 'first_come' then '' else 'commit' end`, "draw_public": `''`,
		"use_within_hours": `0`, "obtain": `'claim'`, "remind_once": `false`}},
	// The copy gets its doors by Compress, after it was published. Doors that open earlier open a minute earlier.
	{"doors", `t.template_id = @drop`, map[string]string{"template_id": `@id`, "lead_minutes": `least(1, t.lead_minutes)`,
		"share": `case when t.share = 0 then 0 else greatest(1, t.share * @share / 1000) end`, "cut_to": `0`, "members": `0`, "cut_at": `null`, "frozen_at": `null`}},
	{"message_versions", `t.shop_number = @shop and t.template_id in (0, @drop)`, map[string]string{"template_id": `case t.template_id when 0 then 0 else @id::bigint end`}},
	{"hook_endpoints", `t.shop_number = @shop and t.enabled and t.rehearsals`, map[string]string{"failures": `0`, "failing_since": `null`, "held_until": `null`, "request_key": `null`}},
	{"reservations", `t.template_id = @drop and (hashtextextended(t.user_id::text, @id::bigint) & 1048575) * 1000 < @share::bigint * 1048576`,
		map[string]string{"template_id": `@id`}},
	{"users", `t.id in (select user_id from reservations where template_id = @id)`, map[string]string{
		"name": `''`, "attributes": `'{}'`,
		"email":   `case when t.email = '' then '' else 'user' || t.id || '@rehearsal.invalid' end`,
		"phone":   `case when t.phone = '' then '' else '+10000000000' end`,
		"push":    `(select coalesce(jsonb_agg(d || '{"endpoint": "https://rehearsal.invalid/", "p256dh": "", "auth": ""}'), '[]') from jsonb_array_elements(t.push) d)`,
		"devices": `(select coalesce(jsonb_agg(d || '{"token": "rehearsal"}'), '[]') from jsonb_array_elements(t.devices) d)`}},
}

// A Filling says what is copied into a world.
type Filling struct {
	// From is the schema of the real drops.
	From string
	// Drop is the drop, ID the id of its copy.
	Drop, ID, Shop int64
	SharePermille  int64
}

// Fill copies the drop with the share of its users into the world that s is in, and returns how many users there are. The copy is a draft.
func (s Rehearsals) Fill(ctx context.Context, f Filling) (users int64, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{"shop": f.Shop, "drop": f.Drop, "id": f.ID, "share": f.SharePermille}
		for _, c := range copiesOf {
			if err := c.copy(ctx, tx, f.From, args); err != nil {
				return fmt.Errorf("copy %s: %w", c.table, err)
			}
		}
		if _, err := tx.Exec(ctx, `insert into bookings (template_id, slot, channel, booked)
			select @id, s.n, c.n, count(*) from `+slotsSQL+` as s (n) cross join `+channelsSQL+` as c (n) join reservations r on r.template_id = @id and r.slots & `+bitSQL("s.n", "c.n")+` <> 0 group by 2, 3`, args); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `select count(*) from reservations where template_id = @id`, args).Scan(&users)
	})
	if err != nil {
		return 0, err
	}
	_, err = s.Pool.Exec(ctx, `analyze reservations, users, templates, bookings`)
	return users, pg.Translate(err)
}

func (c copied) copy(ctx context.Context, tx pgx.Tx, from string, args pgx.NamedArgs) error {
	rows := pg.Rows(ctx, tx, `select column_name::text from information_schema.columns where table_schema = current_schema() and table_name = $1 and is_generated = 'NEVER' order by ordinal_position`, c.table)
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	values := make([]string, len(columns))
	for i, name := range columns {
		columns[i] = pgx.Identifier{name}.Sanitize()
		if values[i] = c.instead[name]; values[i] == "" {
			values[i] = "t." + columns[i]
		}
	}
	_, err = tx.Exec(ctx, `insert into `+c.table+` (`+strings.Join(columns, ", ")+`) overriding system value select `+strings.Join(values, ", ")+
		` from `+pgx.Identifier{from, c.table}.Sanitize()+` t where `+c.where, args)
	return err
}

// OpenIn sets the opening of the copy, a draft, to a while from now, and its end to two hours later, after winners of a draw could accept. It returns the opening and how long it is
// until then, by the database's clock.
func (s Rehearsals) OpenIn(ctx context.Context, id int64, in time.Duration) (at time.Time, wait time.Duration, err error) {
	err = s.Pool.QueryRow(ctx, `update templates set opens_at = date_trunc('second', clock_timestamp() + $2::interval), closes_at = date_trunc('second', clock_timestamp() + $2::interval) + (2 + accept_hours) * interval '1 hour'
		where id = $1 returning opens_at, opens_at - clock_timestamp()`, id, in).Scan(&at, &wait)
	return at, wait, pg.Translate(err)
}

// Compress gives the copy its doors, and moves its slots to distances of step before their openings, but not into the past. All of them wait then.
// Their messages stay of use for as long as those of the drop: five minutes for the last slot, which is later than the opening of the copy.
func (s Rehearsals) Compress(ctx context.Context, id int64, step time.Duration) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update templates set doors = (select count(*) from doors where template_id = $1), version = version + 1 where id = $1`, id); err != nil {
			return err
		}
		t, err := pgx.CollectExactlyOneRow(pg.Rows(ctx, tx, `select `+pg.TemplateColumns+pg.TemplateFrom+`where t.id = $1`, id), pg.ScanTemplate)
		if err == nil {
			_, err = tx.Exec(ctx, `delete from slots where template_id = $1`, id) // those of a drop without doors
		}
		if err == nil {
			err = insertSlots(ctx, tx, t, t.Openings(), string(reminder.Waiting))
		}
		if err == nil {
			_, err = tx.Exec(ctx, `update slots s set due_at = n.due_at, opens_at = n.due_at + s.slot * $3::interval, planned_at = null
				from (select id, greatest(opens_at - slot * $2::interval, clock_timestamp()) as due_at from slots where template_id = $1) n where n.id = s.id`, id, step, template.SlotStep)
		}
		return err
	})
}

// Early counts the reminders of the copy's doors that open earlier, and those of them that were sent.
func (s Rehearsals) Early(ctx context.Context, id int64) (due, sent int64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(sum(r.sent + r.skipped + r.dead + r.expired), 0)::bigint, coalesce(sum(r.sent), 0)::bigint from slots s join slot_results r on r.slot_id = s.id
		where s.template_id = $1 and exists (select from doors d where d.template_id = $1 and d.lead_minutes > 0 and s.doors & (1 << (d.place - 1)) <> 0)`, id).Scan(&due, &sent)
	return due, sent, pg.Translate(err)
}

// Told counts the messages about the result of the copy's draw, and those of them that were sent. all is false while some are not delivered.
func (s Rehearsals) Told(ctx context.Context, id int64) (due, sent int64, all bool, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(sum(due_count), 0)::bigint, coalesce(sum(sent_count), 0)::bigint, not exists (select from announcements where template_id = $1 and state <> 'finished')
		from batches where template_id = $1 and kind in ('won', 'lost')`, id).Scan(&due, &sent, &all)
	return due, sent, all, pg.Translate(err)
}

// Published calls do with each event of the topics that the copy has published, which no relay takes away. do decides what it does with
// an event that it knows.
func (s Rehearsals) Published(ctx context.Context, topics []string, do func(id, topic string, payload []byte) error) error {
	rows, err := s.Pool.Query(ctx, `select event_id::text, topic, payload from outbox where topic = any($1) order by id`, topics)
	if err != nil {
		return pg.Translate(err)
	}
	type published struct {
		ID, Topic string
		Payload   []byte
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[published])
	for _, e := range list {
		err = errors.Join(err, do(e.ID, e.Topic, e.Payload))
	}
	return pg.Translate(err)
}

// EndGate ends the claim gate of the copy, whose shards decide nothing any more: later claims are decided in the database.
func (s Rehearsals) EndGate(ctx context.Context, id int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update templates set claim_mode = 'durable', version = version + 1 where id = $1`, id)
		if err == nil {
			_, err = tx.Exec(ctx, `update gates set state = 'retired' where template_id = $1`, id)
		}
		return err
	})
}

// Winners returns winners of the copy's draw who have not got the coupon that is offered to them.
func (s Rehearsals) Winners(ctx context.Context, id int64) ([]user.ID, error) {
	return s.users(ctx, `select user_id from draw_entries where template_id = $1 and state = 'won' and coupon_id is null and reason is null`, id)
}

// Waiting returns users of the copy's waitlist who wait, the next first, at most limit.
func (s Rehearsals) Waiting(ctx context.Context, id int64, limit int) ([]user.ID, error) {
	return s.users(ctx, `select user_id from waiters where template_id = $1 and state in ('waiting', 'offered') order by rank, joined_at, user_id limit $2`, id, limit)
}

func (s Rehearsals) users(ctx context.Context, sql string, args ...any) ([]user.ID, error) {
	rows, err := s.Pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[user.ID])
	return list, pg.Translate(err)
}

// Given counts the coupons of the copy that users got in a way; "" = in any way.
func (s Rehearsals) Given(ctx context.Context, id int64, by claim.Origin) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from coupons where template_id = $1 and ($2 = '' or origin = $2)`, id, by).Scan(&n)
	return n, pg.Translate(err)
}

// Entered counts the entries of the copy's draw.
func (s Rehearsals) Entered(ctx context.Context, id int64) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from draw_entries where template_id = $1`, id).Scan(&n)
	return n, pg.Translate(err)
}

// Course returns how far the reminders of the copy have come, and whether all of its slots have ended.
func (s Rehearsals) Course(ctx context.Context, id int64) (p rehearsal.Progress, ended bool, err error) {
	err = s.Pool.QueryRow(ctx, `
		-- slots that were fired, slots, reminders in batches, those with an outcome, whether no slot is open
		select count(*) filter (where fired_at is not null), count(*), coalesce(sum(b.due), 0)::bigint, coalesce(sum(b.done), 0)::bigint, count(*) filter (where state in ('waiting', 'firing', 'sending')) = 0
		from slots s left join lateral (select sum(due_count) as due, sum(sent_count + skipped_count + expired_count + dead_count) as done from batches where kind = 'reminder' and owner_id = s.id) b on true
		where s.template_id = $1`, id).Scan(&p.Fired, &p.Slots, &p.Due, &p.Sent, &ended)
	return p, ended, pg.Translate(err)
}

// Outcome fills in the figures about reminders of the copy's report, and returns the longest time from the due instant of a slot to the end of its cut.
func (s Rehearsals) Outcome(ctx context.Context, id int64, r *rehearsal.Report) (cutLate time.Duration, err error) {
	rows := pg.Rows(ctx, s.Pool, `select r.sent, r.skipped, r.dead, r.expired, coalesce(r.late, '{}'), extract(epoch from coalesce(s.cut_at - s.due_at, '0'))::float8
		from slots s join slot_results r on r.slot_id = s.id where s.template_id = $1`, id)
	late := delivery.Lateness{}
	var sent, skipped, dead, expired int64
	var l delivery.Lateness
	var cut float64
	_, err = pgx.ForEachRow(rows, []any{&sent, &skipped, &dead, &expired, &l, &cut}, func() error {
		r.Sent, r.Skipped, r.Dead, r.Expired = r.Sent+sent, r.Skipped+skipped, r.Dead+dead, r.Expired+expired
		late, cutLate = late.Plus(l), max(cutLate, time.Duration(cut*float64(time.Second)))
		l = nil
		return nil
	})
	if err != nil {
		return 0, pg.Translate(err)
	}
	r.Reminders = r.Sent + r.Skipped + r.Dead + r.Expired
	p50, _ := late.Quantile(0.5)
	p99, _ := late.Quantile(0.99)
	r.LateP50, r.LateP99 = p50.Milliseconds(), p99.Milliseconds()
	r.Wave, err = s.wave(ctx, id, ``)
	return cutLate, err
}
