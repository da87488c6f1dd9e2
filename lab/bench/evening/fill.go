package evening

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/lab/bench/stack"
)

// filling is the database with its users and drops.
type filling struct {
	*stack.Stack
	options
}

// first is the id of the first template of each shape: shapes lie apart.
func (f *filling) first(sh shape) int64 { return int64(sh.drops)*1_000_000 + 1 }

// fill makes users, drops and reservations that are not there yet.
func (f *filling) fill(ctx context.Context) error {
	var users int
	if err := f.SQL.QueryRow(ctx, `select count(*) from users`).Scan(&users); err != nil {
		return err
	}
	if users != f.users {
		if _, err := f.SQL.Exec(ctx, `truncate users, reservations cascade`); err != nil {
			return err
		}
		if err := f.fillUsers(ctx); err != nil {
			return fmt.Errorf("users: %w", err)
		}
	}
	if _, err := f.SQL.Exec(ctx, `insert into shops (number, name, timezone) select $1 + i, 'Shop ' || $1 + i, 'UTC' from generate_series(0, greatest($2::int - 1, 0)) i
		on conflict do nothing`, firstShop, f.shops); err != nil {
		return err
	}
	for _, sh := range f.shapes {
		if sh.drops*sh.reservers > f.users {
			return fmt.Errorf("%s: more reservers than users", sh)
		}
		if err := f.fillDrops(ctx, sh); err != nil {
			return fmt.Errorf("%s: %w", sh, err)
		}
	}
	for _, statement := range []string{`vacuum (analyze) users`, `vacuum (analyze) reservations`, `vacuum (analyze) templates`} {
		if _, err := f.SQL.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Numbers among each 100 users: users that have opted out of every channel, and other users with
// quiet hours. Reminders do not wait for quiet hours.
const (
	optedOut = 5
	quiet    = 30
)

// hundredth puts users into a hundred equal groups that lie scattered over the ids.
func hundredth(id int64) int64 { return id * 2_654_435_761 % 4_294_967_296 * 100 / 4_294_967_296 }

func (f *filling) fillUsers(ctx context.Context) error {
	locales, zones := []string{"en", "zh-CN"}, []string{"Europe/Berlin", "Asia/Shanghai"}
	_, err := f.SQL.CopyFrom(ctx, pgx.Identifier{"users"}, []string{"id", "name", "email", "phone", "locale", "timezone", "opt_outs", "quiet_from", "quiet_to"},
		pgx.CopyFromSlice(f.users, func(i int) ([]any, error) {
			id := int64(i + 1)
			optOuts, from, to := int16(0), int16(0), int16(0)
			switch h := hundredth(id); {
			case h < optedOut:
				optOuts = 1<<delivery.Channels - 1
			case h < optedOut+quiet:
				from, to = 22*60, 8*60
			}
			name, email, phone := "", "", ""
			if f.channel(id) != delivery.App {
				name, email, phone = "User "+strconv.Itoa(i+1), stack.Address(i+1), fmt.Sprintf("+4915%09d", id)
			}
			return []any{id, name, email, phone, locales[i%2], zones[i%2], optOuts, from, to}, nil
		}))
	return err
}

// channel is where the user wants reminders.
func (f *filling) channel(id int64) delivery.Channel {
	const step = 40_503 // an order that differs from the order of hundredth
	switch h := int(id * step % 65_536 * 100 / 65_536); {
	case h < f.others:
		return delivery.Email
	case h < 2*f.others:
		return delivery.SMS
	case h < 3*f.others:
		return delivery.Webhook
	}
	return delivery.App
}

// reserver returns the i-th user that reserves. Each user reserves once, and its id is far from
// the previous user's id.
func (f *filling) reserver(i int) int64 {
	const step = 7_368_787 // prime
	return int64(i)*step%int64(f.users) + 1
}

// fillDrops publishes the drops of a shape and reserves the five-minute reminder.
func (f *filling) fillDrops(ctx context.Context, sh shape) error {
	first := f.first(sh)
	if _, err := f.SQL.Exec(ctx, `insert into templates (id, shop_number, name, kind, amount_off, currency, target, stock, per_user_limit, opens_at,
			closes_at, valid_hours, obtain, claim_mode, state)
		overriding system value select $1::bigint + i, $3::bigint + i % greatest($4::int, 1), 'Evening', 'amount_off', 100, 'CNY', 'shop', 10, 1, date_trunc('hour', now()) + interval '2 hours', now() + interval '30 days', 48,
			'claim', 'durable', 'published' from generate_series(0, $2::int - 1) i
		on conflict (id) do update set shop_number = excluded.shop_number`, first, sh.drops, firstShop, f.shops); err != nil {
		return err
	}
	var reserved int
	if err := f.SQL.QueryRow(ctx, `select count(*) from reservations where template_id between $1 and $1 + $2 - 1`, first, sh.drops).Scan(&reserved); err != nil {
		return err
	}
	if reserved == sh.drops*sh.reservers {
		return nil
	}
	// In the order in which they arrive when all drops fill at the same time.
	if _, err := f.SQL.CopyFrom(ctx, pgx.Identifier{"reservations"}, []string{"template_id", "user_id", "slots"},
		pgx.CopyFromSlice(sh.drops*sh.reservers, func(i int) ([]any, error) {
			id := f.reserver(i)
			return []any{first + int64(i%sh.drops), id, stack.Bit(f.channel(id))}, nil
		})); err != nil {
		return err
	}
	_, err := f.SQL.Exec(ctx, `insert into bookings (template_id, slot, channel, booked)
		select template_id, 1, c, count(*) from reservations, generate_series(0, 4) c
		where template_id between $1 and $1 + $2 - 1 and slots & (1::bigint << (12 * c)) <> 0 group by 1, 3
		on conflict (template_id, slot, channel) do update set booked = excluded.booked`, first, sh.drops)
	return err
}

// emptyQueue removes tasks of an earlier run whose database was kept.
func (f *filling) emptyQueue(ctx context.Context) error {
	client, err := f.RedisClient()
	if err != nil {
		return err
	}
	defer client.Close()
	return client.FlushAll(ctx).Err()
}

// ahead is how long before the instant the openings are moved.
const ahead = 4 * time.Second

// arm gives every drop of the shape an opening whose five-minute reminder is due soon. It
// returns the due instant and the new slots.
func (f *filling) arm(ctx context.Context, sh shape) (due time.Time, slots []int64, err error) {
	for _, statement := range []string{`truncate batches, exceptions, accepted_messages, outbox cascade`, `delete from slots`, `checkpoint`} {
		if _, err := f.SQL.Exec(ctx, statement); err != nil {
			return due, nil, err
		}
	}
	first := f.first(sh)
	if err := f.SQL.QueryRow(ctx, `update templates set opens_at = date_trunc('second', now()) + $3::interval + interval '5 minutes'
		where id between $1 and $1 + $2 - 1 returning opens_at - interval '5 minutes'`, first, sh.drops, ahead).Scan(&due); err != nil {
		return due, nil, err
	}
	rows, err := f.SQL.Query(ctx, `insert into slots (template_id, slot, opens_at, due_at, state)
		select id, 1, opens_at, opens_at - interval '5 minutes', 'waiting' from templates where id between $1 and $1 + $2 - 1
		returning id`, first, sh.drops)
	if err != nil {
		return due, nil, err
	}
	slots, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	return due, slots, err
}
