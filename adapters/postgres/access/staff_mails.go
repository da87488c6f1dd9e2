package access

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
)

// RequestPasswordMail stores the request of the member with this address, if there is such a member
// with a password and the last request is older than every. Both cases are one statement.
func (s Staff) RequestPasswordMail(ctx context.Context, email, locale string, every time.Duration) error {
	_, err := s.Pool.Exec(ctx, `
		insert into password_mails as p (staff_id, locale)
		select id, $2 from staff where lower(email) = lower($1) and disabled_at is null and password_hash <> ''
		on conflict (staff_id) do update set locale = excluded.locale, requested_at = clock_timestamp(), next_at = clock_timestamp(), attempts = 0, lease = null
			where p.requested_at < clock_timestamp() - $3::interval`, email, locale, every)
	return pg.Translate(err)
}

// PasswordMailsWait asks whether a mail is due, or was leased and has to be sent again.
const PasswordMailsWait pg.Question = `select from password_mails where next_at <= statement_timestamp() order by next_at limit 1`

// TakePasswordMails leases requests; see [staff.PasswordMailStore]. An attempt counts when it begins.
func (s Staff) TakePasswordMails(ctx context.Context, limit int, lease time.Duration) ([]staff.PasswordMail, error) {
	token := uuid.NewString()
	rows := pg.Rows(ctx, s.Pool, `
		with due as (
			select staff_id from password_mails where next_at <= statement_timestamp() order by next_at limit $1 for update skip locked
		), p as (
			update password_mails p set lease = $2, next_at = clock_timestamp() + $3::interval, attempts = attempts + 1
			from due where p.staff_id = due.staff_id returning p.*
		)
		select p.locale, p.requested_at, p.attempts - 1, `+memberColumns+` from p join staff on staff.id = p.staff_id`, limit, token, lease)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m staff.PasswordMail, err error) {
		m.Lease = token
		return m, row.Scan(append([]any{&m.Locale, &m.RequestedAt, &m.Attempts}, memberTargets(&m.Member)...)...)
	})
	return list, pg.Translate(err)
}

// EndPasswordMail ends the request, unless another worker has taken it or it was repeated.
func (s Staff) EndPasswordMail(ctx context.Context, m staff.PasswordMail) error {
	_, err := s.Pool.Exec(ctx, `update password_mails set next_at = null, lease = null where staff_id = $1 and lease = $2`, m.Member.ID, m.Lease)
	return pg.Translate(err)
}

// DelayPasswordMail delays the request, unless another worker has taken it or it was repeated.
func (s Staff) DelayPasswordMail(ctx context.Context, m staff.PasswordMail, wait time.Duration) error {
	_, err := s.Pool.Exec(ctx, `update password_mails set next_at = clock_timestamp() + $3::interval, lease = null
		where staff_id = $1 and lease = $2`, m.Member.ID, m.Lease, wait)
	return pg.Translate(err)
}
