package access

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
)

// SavePasswordLink replaces the member's link. It returns [staff.ErrNotFound] or
// [staff.ErrDisabled].
func (s Staff) SavePasswordLink(ctx context.Context, l staff.PasswordLink, hash []byte, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var disabled bool
		err := tx.QueryRow(ctx, `select disabled_at is not null from staff where id = $1 for update`, l.StaffID).Scan(&disabled)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return staff.ErrNotFound
		case err != nil:
			return err
		case disabled:
			return staff.ErrDisabled
		}
		if err := insertPasswordLink(ctx, tx, l, hash); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

func insertPasswordLink(ctx context.Context, tx pgx.Tx, l staff.PasswordLink, hash []byte) error {
	_, err := tx.Exec(ctx, `
		insert into password_links (staff_id, hash, purpose, expires_at) values (@member, @hash, @purpose, @expires)
		on conflict (staff_id) do update set
			hash = excluded.hash, purpose = excluded.purpose, expires_at = excluded.expires_at, created_at = now()`,
		pgx.NamedArgs{"member": l.StaffID, "hash": hash, "purpose": l.Purpose, "expires": l.ExpiresAt})
	return err
}

// PasswordLink returns the link with the hash, and the link's member. It returns
// [staff.ErrPasswordLink] if no link with the hash is valid at now.
func (s Staff) PasswordLink(ctx context.Context, hash []byte, now time.Time) (staff.PasswordLink, staff.Member, error) {
	l, m, err := passwordLink(ctx, s.Pool, hash, now, "")
	return l, m, pg.Translate(err)
}

// passwordLink reads a link and its member, if the member is not disabled. lock is the SQL
// clause that locks the rows; empty = no lock.
func passwordLink(ctx context.Context, q pg.Querier, hash []byte, now time.Time, lock string) (l staff.PasswordLink, m staff.Member, err error) {
	targets := append([]any{&l.StaffID, &l.Purpose, &l.ExpiresAt}, memberTargets(&m)...)
	err = q.QueryRow(ctx, `
		select l.staff_id, l.purpose, l.expires_at, `+memberColumns+`
		from password_links l join staff on staff.id = l.staff_id
		where l.hash = $1 and l.expires_at > $2 and staff.disabled_at is null `+lock, hash, now).Scan(targets...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = staff.ErrPasswordLink
	}
	return l, m, err
}

// UsePasswordLink sets the password of the link's member, ends the member's sign-ins and removes
// the link. It returns [staff.ErrPasswordLink] if the link is not valid at now, or another call
// has used the link.
func (s Staff) UsePasswordLink(ctx context.Context, hash []byte, now time.Time, passwordHash string,
	e func(staff.PasswordLink, staff.Member) staff.Entry) (m staff.Member, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		var l staff.PasswordLink
		if l, m, err = passwordLink(ctx, tx, hash, now, "for update of staff"); err != nil {
			return err
		}
		if err := pg.Change(ctx, tx, staff.ErrPasswordLink, `delete from password_links where staff_id = $1 and hash = $2`, m.ID, hash); err != nil { // used or replaced while this call waited for the member's row
			return err
		}
		if _, err := tx.Exec(ctx, `update staff set password_hash = $2, updated_at = now() where id = $1`, m.ID, passwordHash); err != nil {
			return err
		}
		m.PasswordHash, m.InvitedUntil = passwordHash, nil
		if err := endSignIns(ctx, tx, m.ID); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e(l, m))
	})
	return m, err
}
