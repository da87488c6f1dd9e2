package audience

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	"dropbell/domain/user/verification"
)

// Verifications stores the codes that prove phone numbers.
type Verifications struct{ *pg.DB }

// NewVerifications returns the codes of db.
func NewVerifications(db *pg.DB) Verifications { return Verifications{db} }

// limitsSQL returns how long the user has to wait before requesting another code, and how many
// codes were sent to the number in the last hour and in the last day.
const limitsSQL = `
with own as (
	select created_at, row_number() over (order by created_at desc) as n from phone_verifications
	where user_id = @user and created_at > clock_timestamp() - interval '1 day'
), waits as (
	select max(created_at) + @again::interval as until from own
	union all select created_at + interval '1 hour' from own where n = @per_hour
	union all select created_at + interval '1 day' from own where n = @per_day
)
select coalesce((select max(until) from waits) - clock_timestamp(), interval '0'),
	count(*) filter (where created_at > clock_timestamp() - interval '1 hour'), count(*)
from phone_verifications where number = @number and state <> 'held' and created_at > clock_timestamp() - interval '1 day'`

// openSQL stores a request. The request is held if @full is set, or if another user has proved
// to own the number, by STOP or by a code, and has opted out of text messages.
const openSQL = `
insert into phone_verifications (user_id, phone, number, locale, expires_at, state)
select @user::bigint, @phone::text, @number::text, @locale::text, clock_timestamp() + @valid::interval,
	case when @full::boolean or exists (select from users u where u.phone = any(@forms::text[]) and u.phone <> '' and u.id <> @user and u.opt_outs & @bit::smallint <> 0
			and (u.phone_verified_at is not null or exists (select from sms_stops s where s.user_id = u.id)))
		then 'held' else 'waiting' end
returning id, state, created_at, expires_at`

// Open stores a request; see [verification.Store]. Concurrent requests of a user, and for a
// number, wait for each other, so that no request exceeds the limits.
func (s Verifications) Open(ctx context.Context, o verification.Opening) (opened verification.Opened, err error) {
	args := pgx.NamedArgs{"user": o.User, "phone": o.Phone, "number": o.Number, "locale": o.Locale, "forms": o.Forms, "bit": int16(smsBit),
		"again": verification.AgainAfter, "per_hour": verification.PerHour, "per_day": verification.PerDay, "valid": verification.CodeFor}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := noneErased(ctx, tx, []user.ID{o.User}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended(t, 0))
			from unnest(array['dropbell:codes of user:' || @user::bigint, 'dropbell:codes for number:' || @number::text]) as t order by t`, args); err != nil {
			return err
		}
		var wait time.Duration
		var hour, day int
		// A separate statement sees the requests that were stored while the transaction waited
		// for the locks.
		if err := tx.QueryRow(ctx, limitsSQL, args).Scan(&wait, &hour, &day); err != nil {
			return err
		}
		if wait > 0 {
			return &fault.RetryAfter{Err: verification.ErrTooMany, After: max(wait, time.Second)}
		}
		args["full"] = hour >= verification.PerHour || day >= verification.PerDay
		var id int64
		var state string
		var at time.Time
		if err := tx.QueryRow(ctx, openSQL, args).Scan(&id, &state, &at, &opened.ExpiresAt); err != nil {
			return err
		}
		opened.Phone, opened.AgainAt = o.Phone, at.Add(verification.AgainAfter)
		if state == "held" {
			return nil
		}
		return pg.Announce(ctx, tx, event.CodeRequested, event.PhoneCode{VerificationID: id, At: at})
	})
	return opened, err
}

// trySQL counts an attempt and returns the request. PostgreSQL evaluates the conditions again
// after waiting for a concurrent attempt, so that no more attempts than permitted are counted.
const trySQL = `
update phone_verifications v set attempts = v.attempts + 1
from (select id from phone_verifications where user_id = @user order by id desc limit 1) last
where v.id = last.id and v.attempts < @most and v.confirmed_at is null and v.expires_at > clock_timestamp()
returning v.id, v.phone, v.code_hash`

// verifiedSQL makes the number the user's.
const verifiedSQL = `
insert into users (id, phone, phone_verified_at) values (@user, @phone, clock_timestamp())
on conflict (id) do update set phone = excluded.phone, phone_verified_at = excluded.phone_verified_at, updated_at = now()`

// Try counts an attempt and compares it; see [verification.Store].
func (s Verifications) Try(ctx context.Context, id user.ID, match func(r verification.Request, hash []byte) bool) (phone string, err error) {
	wrong := false
	args := pgx.NamedArgs{"user": id, "most": verification.MaxAttempts}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		wrong = false
		if err := noneErased(ctx, tx, []user.ID{id}); err != nil {
			return err
		}
		r := verification.Request{User: id}
		var hash []byte
		err := tx.QueryRow(ctx, trySQL, args).Scan(&r.ID, &r.Phone, &hash)
		if errors.Is(err, pgx.ErrNoRows) {
			return verification.ErrNoCode
		}
		if err != nil {
			return err
		}
		if wrong = !match(r, hash); wrong {
			return nil // the attempt stays counted
		}
		phone, args["phone"], args["id"] = r.Phone, r.Phone, r.ID
		if _, err := tx.Exec(ctx, `update phone_verifications set confirmed_at = clock_timestamp(), code_hash = null where id = @id`, args); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, verifiedSQL, args); err != nil {
			return err
		}
		return pg.Announce(ctx, tx, event.UsersChanged, event.Users{FromUser: int64(id), ToUser: int64(id)})
	})
	if err == nil && wrong {
		return "", verification.ErrWrong
	}
	return phone, err
}

// sendable selects requests whose code may be sent: requests from not long ago that are neither
// confirmed nor replaced by a newer request of the user.
const sendable = `v.confirmed_at is null and v.created_at > clock_timestamp() - @within::interval
	and (v.state = 'waiting' or v.state = 'sending' and v.lease_until < clock_timestamp())
	and not exists (select from phone_verifications n where n.user_id = v.user_id and n.id > v.id)
	and not exists (select from channel_settings c where c.channel = @channel and c.paused)`

func sendingArgs() pgx.NamedArgs {
	return pgx.NamedArgs{"within": verification.SendWithin, "channel": delivery.SMS}
}

// Take leases a request; see [verification.SendStore].
func (s Verifications) Take(ctx context.Context, id int64, lasting time.Duration) (verification.Taken, error) {
	t := verification.Taken{Request: verification.Request{ID: id}, Token: uuid.NewString()}
	args := sendingArgs()
	args["id"], args["token"], args["lasting"] = id, t.Token, lasting
	err := s.Pool.QueryRow(ctx, `
		update phone_verifications v set state = 'sending', token = @token, tries = tries + 1, lease_until = clock_timestamp() + @lasting::interval
		where v.id = @id and v.due_at <= clock_timestamp() and `+sendable+`
		returning v.user_id, v.phone, v.locale, v.tries, clock_timestamp(), coalesce((select min(name) from shops having count(*) = 1), '')`, args).
		Scan(&t.User, &t.Phone, &t.Locale, &t.Tries, &t.Now, &t.Shop)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, delivery.ErrNoWork
	}
	return t, pg.Translate(err)
}

// Arm stores the hash of a code; see [verification.SendStore].
func (s Verifications) Arm(ctx context.Context, t verification.Taken, hash []byte) error {
	return pg.Translate(pg.Change(ctx, s.Pool, delivery.ErrNoWork, `update phone_verifications set code_hash = $3, expires_at = clock_timestamp() + $4::interval
		where id = $1 and token = $2 and state = 'sending' and confirmed_at is null`, t.ID, t.Token, hash, verification.CodeFor))
}

// End records the outcome of a message; see [verification.SendStore].
func (s Verifications) End(ctx context.Context, t verification.Taken, reason string, again time.Duration) error {
	state := "sent"
	switch {
	case again > 0:
		state = "waiting"
	case reason != "":
		state = "failed"
	}
	_, err := s.Pool.Exec(ctx, `update phone_verifications set state = $3, reason = $4, due_at = clock_timestamp() + $5::interval, token = null, lease_until = null
		where id = $1 and token = $2 and state = 'sending'`, t.ID, t.Token, state, reason, again)
	return pg.Translate(err)
}

// taskFor is how long a task has before the sweep sends a message.
const taskFor = 2 * time.Second

// VerificationsWait asks for codes that are not sent.
const VerificationsWait pg.Question = `select from phone_verifications where state in ('waiting', 'sending') order by due_at limit 1`

// Due returns requests that no task has sent; see [verification.SendStore].
func (s Verifications) Due(ctx context.Context, limit int) ([]int64, error) {
	args := sendingArgs()
	args["limit"], args["task"] = limit, taskFor
	if _, err := s.Pool.Exec(ctx, `update phone_verifications v set state = 'failed', reason = case when reason = '' then 'deadline' else reason end, token = null
		where v.state in ('waiting', 'sending') and coalesce(v.lease_until, '-infinity') < clock_timestamp() and v.created_at < clock_timestamp() - @within::interval`, args); err != nil {
		return nil, pg.Translate(err)
	}
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `select v.id from phone_verifications v where v.due_at <= statement_timestamp()
		and (v.tries > 0 or v.created_at < clock_timestamp() - @task::interval) and `+sendable+` order by v.due_at limit @limit`, args)
}
