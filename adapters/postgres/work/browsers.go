package work

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff/alert"
)

// Browsers lists the member's browsers; see [alert.BrowserStore].
func (s Alerts) Browsers(ctx context.Context, member int64) ([]alert.Browser, error) {
	rows := pg.Rows(ctx, s.Pool, `select `+browserColumns+`, coalesce(last.state, ''), coalesce(last.detail, '') from staff_browsers b
		left join lateral (select state, detail from alert_pushes v where v.browser_id = b.id order by v.id desc limit 1) last on true
		where b.staff_id = $1 and `+signedInSQL+` order by b.id desc`, member)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b alert.Browser, err error) {
		err = row.Scan(append(browserFields(&b), &b.Last, &b.Detail)...)
		return b, err
	})
	return list, pg.Translate(err)
}

// signedInSQL is true unless the sign-in of browser b was revoked. A sign-in that ended by its
// age counts as not revoked. Housekeeping removes a sign-in's browsers before the revoked
// sign-in.
const signedInSQL = `not exists (select from sign_ins i where i.id = b.sign_in and i.revoked_at is not null)`

const browserColumns = `b.id, b.staff_id, b.sign_in::text, b.endpoint, b.p256dh, b.auth, b.agent, b.language, b.created_at`

func browserFields(b *alert.Browser) []any {
	return []any{&b.ID, &b.Member, &b.SignIn, &b.Subscription.Endpoint, &b.Subscription.P256dh, &b.Subscription.Auth, &b.Agent, &b.Language, &b.CreatedAt}
}

// AddBrowser stores b. Browsers of one member are added one after another.
func (s Alerts) AddBrowser(ctx context.Context, b alert.Browser, most int) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from staff where id = $1 for no key update`, b.Member); err != nil {
			return err
		}
		// The row is replaced by a new row, so that pushes to the browser's former member are
		// deleted.
		if _, err := tx.Exec(ctx, `delete from staff_browsers where endpoint = $1`, b.Subscription.Endpoint); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into staff_browsers (staff_id, sign_in, endpoint, p256dh, auth, agent, language) values ($1, $2, $3, $4, $5, $6, $7)
			on conflict (endpoint) do update set staff_id = excluded.staff_id, sign_in = excluded.sign_in, p256dh = excluded.p256dh, auth = excluded.auth,
				agent = excluded.agent, language = excluded.language, created_at = excluded.created_at`,
			b.Member, b.SignIn, b.Subscription.Endpoint, b.Subscription.P256dh, b.Subscription.Auth, b.Agent, b.Language); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `delete from staff_browsers where staff_id = $1 and id not in (select id from staff_browsers where staff_id = $1 order by id desc limit $2)`, b.Member, most)
		return err
	})
}

// FollowBrowser moves a browser to its next sign-in; see [alert.BrowserStore]. digest is the
// browser's [alert.Browser.Digest].
func (s Alerts) FollowBrowser(ctx context.Context, member int64, digest, signIn string) error {
	_, err := s.Pool.Exec(ctx, `update staff_browsers b set sign_in = $3
		where b.staff_id = $1 and rtrim(translate(encode(sha256(convert_to(b.endpoint, 'UTF8')), 'base64'), '+/', '-_'), '=') = $2 and `+signedInSQL,
		member, digest, signIn)
	return pg.Translate(err)
}

// RemoveBrowser removes the member's browser, if it is there.
func (s Alerts) RemoveBrowser(ctx context.Context, member, id int64) error {
	_, err := s.Pool.Exec(ctx, `delete from staff_browsers where id = $1 and staff_id = $2`, id, member)
	return pg.Translate(err)
}

// ForgetBrowser removes a browser that is gone, together with its pushes. A browser that has
// subscribed anew under the same endpoint has other keys and is not removed.
func (s Alerts) ForgetBrowser(ctx context.Context, b alert.Browser) error {
	_, err := s.Pool.Exec(ctx, `delete from staff_browsers where id = $1 and p256dh = $2 and auth = $3`, b.ID, b.Subscription.P256dh, b.Subscription.Auth)
	return pg.Translate(err)
}

// TryBrowser raises a test alert for one browser.
func (s Alerts) TryBrowser(ctx context.Context, member, id int64, deadline time.Duration) error {
	return pg.Translate(pg.Change(ctx, s.Pool, alert.ErrNoBrowser, `
		with b as (select id from staff_browsers where id = $1 and staff_id = $2),
		a as (insert into alerts (kind, key, member_id, name, ended_at) select $3, $4, $2, '', clock_timestamp() from b returning id)
		insert into alert_pushes (alert_id, browser_id, deadline_at) select a.id, b.id, clock_timestamp() + $5::interval from a, b`,
		id, member, alert.Test, string(alert.Test)+":"+uuid.NewString(), deadline))
}

// pushAlert makes a push of the alert for each browser of the members who see the alert; see
// seenSQL. A browser that is being removed is left out: its row would be gone before the push
// refers to it.
func pushAlert(ctx context.Context, tx pgx.Tx, id int64, c alert.Condition, deadline time.Duration) error {
	_, err := tx.Exec(ctx, `
		insert into alert_pushes (alert_id, browser_id, deadline_at)
		select $1, b.id, clock_timestamp() + $5::interval from staff_browsers b join staff m on m.id = b.staff_id
		where m.disabled_at is null and `+signedInSQL+`
			and ($2 = 0 and (cardinality(m.shops) = 0 or $3 = any(m.shops)) or $2 = m.id)
			and not exists (select from alert_readers r where r.staff_id = m.id and $4 = any(r.muted))
		for key share of b skip locked`, id, c.Member, c.Shop, c.Kind, deadline)
	return err
}

// AlertPushesWait asks whether a push is due, or was leased and has to be sent again.
const AlertPushesWait pg.Question = `select from alert_pushes where state = 'waiting' and next_at <= statement_timestamp() order by next_at limit 1`

// TakePushes leases pushes; an attempt counts when it begins. Pushes to browsers whose sign-in
// was revoked meanwhile are dropped, like pushes whose deadline has passed.
func (s Alerts) TakePushes(ctx context.Context, limit int, lease time.Duration) ([]alert.Push, error) {
	if _, err := s.Pool.Exec(ctx, `update alert_pushes v set state = 'dropped', ended_at = clock_timestamp() from staff_browsers b
		where v.state = 'waiting' and v.next_at <= statement_timestamp() and b.id = v.browser_id and (v.deadline_at <= clock_timestamp() or not `+signedInSQL+`)`); err != nil {
		return nil, pg.Translate(err)
	}
	token := uuid.NewString()
	rows := pg.Rows(ctx, s.Pool, `
		with due as (
			select id from alert_pushes where state = 'waiting' and next_at <= statement_timestamp() order by next_at limit $1 for update skip locked
		), v as (
			update alert_pushes v set lease = $2, next_at = clock_timestamp() + $3::interval, attempts = attempts + 1 from due where v.id = due.id returning v.*
		)
		select v.id, v.attempts, v.deadline_at, a.key, `+alertColumns+`, `+browserColumns+`
		from v join alerts a on a.id = v.alert_id join staff_browsers b on b.id = v.browser_id`, limit, token, lease)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p alert.Push, err error) {
		p.Lease = token
		err = row.Scan(append(append([]any{&p.ID, &p.Attempts, &p.DeadlineAt, &p.Key}, alertFields(&p.Alert)...), browserFields(&p.Browser)...)...)
		p.Attempts--
		return p, err
	})
	return list, pg.Translate(err)
}

// RecordPush stores the outcome of an attempt, unless another worker has taken the push over.
func (s Alerts) RecordPush(ctx context.Context, p alert.Push, o alert.Outcome, wait time.Duration) error {
	_, err := s.Pool.Exec(ctx, `update alert_pushes set state = $3, detail = $4, lease = null,
			next_at = clock_timestamp() + $5::interval, ended_at = case when $3 = 'waiting' then null else clock_timestamp() end
		where id = $1 and lease = $2 and state = 'waiting'`, p.ID, p.Lease, o.State, o.Detail, wait)
	return pg.Translate(err)
}
