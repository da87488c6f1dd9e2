package drops

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// The statements that store a group of reservations. No two reservations of a group have the
// same user. A statement returns a row for each decided reservation; reservations with a known
// idempotency key are not decided. Parameters: $1 templates, $2 users, $3 bits, $4 the bits of
// slot 1 on every channel, $5 the templates, each once, $6 the sums of the event if all
// reservations are stored, $7 the event's trace, and $8 to $11 the idempotency keys: actors,
// keys (empty = none), hashes and terms. The last one of statements with doors is the users' doors;
// see [withDoors].
//
// FOR SHARE locks the slots. Firing a slot and moving an opening update the same rows. Either
// this group commits first and the firing counts it, or the firing commits first; then this
// statement reads the row again after its wait and finds it is no longer 'waiting'. Comparing
// clocks alone would leave a gap. clock_timestamp is used instead of now, because the wait may
// be long.
//
// Nearly always the whole group is stored. The sums are computed in advance for this case, and
// the data for answers to refused reservations is read only if there are any.
//
// A statement without a lookup fails with a unique violation if a key is known or becomes
// known meanwhile. The group is then repeated with the statement that leaves out requests with
// known keys.
//
// The listed statements also write an event that names the users, for shops that want it. The
// numbers of its items are drawn after the rows of the reservations were locked.
var reserveSQL = func() map[reserving]string {
	all := map[reserving]string{}
	for keys, asked := range map[keys]string{none: withAsked, fresh: withAskedOnce, looked: withAskedAgain} {
		for _, kind := range []reserving{{keys: keys}, {keys: keys, listed: true}, {keys: keys, doors: true}, {keys: keys, listed: true, doors: true}} {
			sql := asked + reserveRows
			if kind.keys != none {
				sql += reserveKeys
			}
			if kind.listed {
				sql += reserveList
			}
			if sql += reserveAnswers; kind.doors && keys == none {
				sql = withDoors(sql, "$8")
			} else if kind.doors {
				sql = withDoors(sql, "$12")
			}
			all[kind] = sql
		}
	}
	return all
}()

// reserving selects the statement for a group of reservations.
type reserving struct {
	keys   keys
	listed bool
	doors  bool // some of the drops have doors
}

// withDoors makes of a statement about changes of reservations the statement that knows the doors of the
// users, by their places in the parameter: 0 = the drop has no doors, or the user comes through none and may
// cancel what is open to any door. Which slots are open is then known for each template and door.
func withDoors(sql, places string) string {
	return strings.NewReplacer("$3::bigint[]", "$3::bigint[], "+places+"::smallint[]", "a (template_id, user_id, bits", "a (template_id, user_id, bits, door",
		"select template_id, slot from slots", "select template_id, slot, doors from slots",
		"select template_id, bit_or($4::bigint << (slot - 1)) as mask from locked group by template_id",
		`select a.template_id, a.door, bit_or($4::bigint << (l.slot - 1)) as mask from (select distinct template_id, door from asked) a
        join locked l on l.template_id = a.template_id and (a.door = 0 or l.doors = 0 or l.doors & (1 << (a.door - 1)) <> 0) group by 1, 2`,
		"from stored join still_open o using (template_id)", "from stored join asked a using (template_id, user_id) join still_open o using (template_id, door)",
		"still_open o using (template_id)", "still_open o using (template_id, door)",
		"still_open o on o.template_id = a.template_id", "still_open o on o.template_id = a.template_id and o.door = a.door").Replace(sql)
}

// keys are the kinds of a group's idempotency keys: no keys, keys that are assumed to be new,
// or keys that are looked up first.
type keys int

const (
	none keys = iota
	fresh
	looked
)

const (
	withAsked = `
with asked as not materialized (
    select * from unnest($1::bigint[], $2::bigint[], /*users*/$3::bigint[]) as a (template_id, user_id, bits/*door*/)
), size as (
    select cardinality($1) as n
)`
	withKeys = `
with asked as (
    select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $8::text[], $9::text[], $10::bytea[], $11::bytea[])
        as a (template_id, user_id, bits, actor, key, hash, terms)`
	// The keys of nearly all requests are new. If a key is not, the unique index refuses it.
	withAskedOnce = withKeys + `
), size as (
    select cardinality($1) as n
)`
	withAskedAgain = withKeys + `
    -- limit: one look into the index for each, whatever the statistics say
    where key = '' or (select true from idempotency_keys i where i.actor = a.actor and i.key = a.key limit 1) is null
), size as (
    select count(*) as n from asked
)`
	reserveRows = `, locked as (
    -- is true: the index of all waiting slots is no way to those of a few templates
    select template_id, slot from slots
    where template_id = any($5::bigint[]) and (state = 'waiting') is true and due_at > clock_timestamp()
    order by id for share
), still_open as (
    select template_id, bit_or($4::bigint << (slot - 1)) as mask from locked group by template_id
), stored as (
    insert into reservations as r (template_id, user_id, slots)
    select a.template_id, a.user_id, a.bits from asked a join still_open o using (template_id)
    where a.bits & ~o.mask = 0
    order by a.template_id, a.user_id
    on conflict (template_id, user_id) do update
        set slots = r.slots | excluded.slots, standing = null, updated_at = now()
        where r.slots & excluded.slots = 0
    returning r.template_id, r.user_id, r.slots, xmax = 0 as created
), announced as (
    insert into outbox (topic, payload, trace)
    select '` + event.ReservationsChanged + `', jsonb_build_object('at', now(), 'added', case when n = cardinality($1) then $6::jsonb else (
            select jsonb_agg(jsonb_build_object('template_id', template_id::text, 'bits', bits::text, 'users', users))
            from (select a.template_id, a.bits, count(*) as users from stored join asked a using (template_id, user_id) group by 1, 2) g) end), $7
    from (select count(*) as n from stored) s
    where n > 0
), decided as (
    select user_id, slots as after, created, o.mask as open, 0::bigint as before, false as opened
    from stored join still_open o using (template_id)
    union all
    select a.user_id, null, false, coalesce(o.mask, 0),
        coalesce((select r.slots from reservations r where r.template_id = a.template_id and r.user_id = a.user_id), 0),
        coalesce((select t.opens_at <= clock_timestamp() from templates t where t.id = a.template_id), false)
    from asked a left join still_open o using (template_id)
    where (select count(*) from stored) < (select n from size) and not exists (select from stored s where s.user_id = a.user_id)
)`
	reserveKeys = `, kept as (
    insert into idempotency_keys (actor, key, request_hash, locked_until, known, found)
    select a.actor, a.key, a.hash, 'infinity', a.terms,
        array[(d.after is not null)::int + 2 * d.created::int + 4 * d.opened::int, coalesce(d.after, 0), d.before, d.open]
    from decided d join asked a using (user_id) where a.key <> ''
    order by a.actor, a.key
)`
	reserveList = `, numbered as (
    select template_id, user_id, nextval('hook_sequence') as sequence from stored
), listed as (
    insert into outbox (topic, payload, trace)
    select '` + event.ReservationsListed + `', jsonb_build_object('template_id', template_id::text, 'items', jsonb_agg(jsonb_build_object(
            'user_id', user_id::text, 'bits', bits::text, 'sequence', sequence::text, 'at', clock_timestamp()))), $7
    from (select s.template_id, s.user_id, a.bits, s.sequence
        from numbered s join asked a using (template_id, user_id)
        where (select true from hook_wants w where w.shop_number = (select t.shop_number from templates t where t.id = s.template_id)
            and (cardinality(w.types) = 0 or '` + string(hook.ReservationMade) + `' = any(w.types)) limit 1)) l
    group by template_id
)`
	reserveAnswers = `
select user_id, after, created, open, before, opened from decided`
)

func (r *Reservations) reserveAll(ctx context.Context, group []reminder.Change) ([]reminder.Decision, error) {
	if err := killpoint.Before("reservations.change"); err != nil {
		return nil, err
	}
	templates, users, bits := columns(group)
	args := []any{templates, users, bits, reminder.EveryChannel, distinct(templates), sums(templates, bits), pg.TraceOf(ctx)}
	kind := reserving{listed: r.Listed != nil && r.Listed(ctx, false)}
	kind.doors = slices.ContainsFunc(group, behindDoor)
	if slices.ContainsFunc(group, func(c reminder.Change) bool { return c.Once != nil }) {
		args, kind.keys = append(args, keysOf(group)...), fresh
		if r.repeats.Add(-1) >= 0 {
			kind.keys = looked
		}
	}
	if kind.doors {
		args = append(args, places(group))
	}
	for try := 1; ; try++ {
		decisions, err := r.reserveWith(ctx, reserveSQL[kind], group, args)
		if err == nil {
			return decisions, killpoint.After("reservations.change")
		}
		if !keyTaken(err) || try == triesForKeys {
			return nil, err
		}
		kind.keys = looked
		r.repeats.Store(lookAfterRepeat)
	}
}

// lookAfterRepeat is the number of groups that look up their keys first after a key was known.
// Repeated requests come together, after a failure, and each would make its group start again.
const lookAfterRepeat = 256

// triesForKeys is how often a group is attempted while its keys become known. From the second
// attempt on, this happens only if another process stores one of the keys meanwhile.
const triesForKeys = 4

func keyTaken(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "23505" && refused.TableName == "idempotency_keys"
}

// reserveWith runs one of the statements as a transaction of its own.
func (r *Reservations) reserveWith(ctx context.Context, sql string, group []reminder.Change, args []any) ([]reminder.Decision, error) {
	decisions, of := make([]reminder.Decision, len(group)), make(map[user.ID]int, len(group))
	for i, c := range group {
		decisions[i].Repeated, of[c.UserID] = c.Once != nil, i
	}
	err := r.PlannedByHash(ctx, sql, args, func(rows pgx.Rows) error {
		for rows.Next() {
			var by user.ID
			d, err := scanDecision(rows, &by)
			if err != nil {
				return err
			}
			decisions[of[by]] = d
		}
		return rows.Err()
	})
	return decisions, err
}

// behindDoor reports whether the change is about a drop with doors.
func behindDoor(c reminder.Change) bool { return c.Door != 0 }

// places returns the column of the users' doors.
func places(group []reminder.Change) []int16 {
	list := make([]int16, len(group))
	for i, c := range group {
		list[i] = int16(c.Door)
	}
	return list
}

// distinct returns each of the ids once.
func distinct(ids []int64) []int64 {
	list := slices.Clone(ids)
	slices.Sort(list)
	return slices.Compact(list)
}

// sums returns the content of the event for a group that is stored as a whole, as JSON: the
// number of users who reserved the same bits of the same template.
func sums(templates, bits []int64) string {
	type cell struct{ template, bits int64 }
	users := make(map[cell]int64, 16)
	for i, t := range templates {
		users[cell{t, bits[i]}]++
	}
	list := make([]event.Booking, 0, len(users))
	for c, n := range users {
		list = append(list, event.Booking{TemplateID: c.template, Bits: c.bits, Users: n})
	}
	text, _ := json.Marshal(list) // numbers and strings of digits do not fail
	return string(text)
}

// keysOf returns the columns of the group's idempotency keys.
func keysOf(group []reminder.Change) []any {
	n := len(group)
	actors, keys, hashes, terms := make([]string, n), make([]string, n), make([][]byte, n), make([][]byte, n)
	for i := range group {
		if once := group[i].Once; once != nil {
			actors[i], keys[i], hashes[i], terms[i] = once.Actor, once.Key, once.Hash, once.Terms
		}
	}
	return []any{actors, keys, hashes, terms}
}
