// Package access stores the members of the staff, their second factors, links,
// sign-ins and sessions, API keys, and the audit log.
package access

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
)

// Staff stores the staff and API keys that operate Dropbell.
type Staff struct{ *pg.DB }

// NewStaff returns the staff store of db.
func NewStaff(db *pg.DB) Staff { return Staff{db} }

// memberColumns are the columns of a member of staff, the number of the member's second factors,
// and the end of the member's invitation.
const memberColumns = `staff.id, staff.email, staff.name, staff.role, staff.shops, staff.password_hash, staff.locale, staff.theme,
	staff.disabled_at, staff.created_at, staff.sso_issuer, staff.sso_subject, (select count(*) from second_factors f where f.staff_id = staff.id),
	(select l.expires_at from password_links l where l.staff_id = staff.id and l.purpose = 'invitation')`

func scanMember(row pgx.CollectableRow) (staff.Member, error) {
	var m staff.Member
	err := row.Scan(memberTargets(&m)...)
	return m, err
}

// memberTargets are where memberColumns are scanned to.
func memberTargets(m *staff.Member) []any {
	return []any{&m.ID, &m.Email, &m.Name, &m.Role, &m.Shops, &m.PasswordHash, &m.Locale, &m.Theme, &m.DisabledAt, &m.CreatedAt,
		&m.Issuer, &m.Subject,
		&m.SecondFactors, &m.InvitedUntil}
}

// Member returns [staff.ErrNotFound] if there is none.
func (s Staff) Member(ctx context.Context, id int64) (staff.Member, error) {
	return s.member(ctx, `select `+memberColumns+` from staff where id = $1`, id)
}

// MemberByIdentity returns [staff.ErrNotFound] if no member is linked to the person.
func (s Staff) MemberByIdentity(ctx context.Context, issuer, subject string) (staff.Member, error) {
	return s.member(ctx, `select `+memberColumns+` from staff where sso_issuer = $1 and sso_subject = $2 and sso_subject <> ''`, issuer, subject)
}

// MemberByEmail returns [staff.ErrNotFound] if there is none.
func (s Staff) MemberByEmail(ctx context.Context, email string) (staff.Member, error) {
	return s.member(ctx, `select `+memberColumns+` from staff where lower(email) = lower($1)`, email)
}

func (s Staff) member(ctx context.Context, sql string, args ...any) (staff.Member, error) {
	return pg.One(ctx, s.Pool, scanMember, staff.ErrNotFound, sql, args...)
}

// Members lists the members by e-mail.
func (s Staff) Members(ctx context.Context) ([]staff.Member, error) {
	return pg.Collect(ctx, s.Pool, scanMember, `select `+memberColumns+` from staff order by lower(email)`)
}

// InsertMember stores m and, if hash is not empty, an invitation with this hash
// for m. It returns [staff.ErrEmailTaken] if the address is in use.
func (s Staff) InsertMember(ctx context.Context, m staff.Member, l staff.PasswordLink, hash []byte, e staff.Entry) (staff.Member, error) {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		if err := insertMember(ctx, tx, &m, e); err != nil || len(hash) == 0 {
			return err
		}
		l.StaffID = m.ID
		m.InvitedUntil = &l.ExpiresAt
		return insertPasswordLink(ctx, tx, l, hash)
	})
	return m, err
}

func insertMember(ctx context.Context, tx pgx.Tx, m *staff.Member, e staff.Entry) error {
	err := tx.QueryRow(ctx, `
		insert into staff (email, name, role, shops, password_hash, disabled_at) values ($1, $2, $3, $4, $5, $6)
		returning id, created_at`,
		m.Email, m.Name, m.Role, append([]int64{}, m.Shops...), m.PasswordHash, m.DisabledAt).Scan(&m.ID, &m.CreatedAt)
	if pg.Violates(err, "staff_email") {
		return staff.ErrEmailTaken
	}
	if err != nil {
		return err
	}
	e.ObjectID = strconv.FormatInt(m.ID, 10)
	return pg.InsertAudit(ctx, tx, e)
}

// managing selects the admins who can manage access; admins who are limited to shops cannot.
const managing = `role = 'admin' and shops = '{}' and disabled_at is null`

// InsertFirstAdmin creates m, or restores the access of the account with its
// address, unless there is an admin who can manage staff.
func (s Staff) InsertFirstAdmin(ctx context.Context, m staff.Member, e staff.Entry) (created bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockAdmins(ctx, tx); err != nil {
			return err
		}
		var exists bool
		err := tx.QueryRow(ctx, `select exists (select from staff where `+managing+`)`).Scan(&exists)
		if err != nil || exists {
			return err
		}
		created = true
		restored, err := restoreAdmin(ctx, tx, m, e)
		if err != nil || restored {
			return err
		}
		return insertMember(ctx, tx, &m, e)
	})
	return created && err == nil, err
}

// restoreAdmin gives the account with m's address the role and the access of m, if there is such
// an account. The account had been disabled or limited to shops while other admins could manage
// staff.
func restoreAdmin(ctx context.Context, tx pgx.Tx, m staff.Member, e staff.Entry) (bool, error) {
	old, err := pgx.CollectExactlyOneRow(pg.Rows(ctx, tx, `select `+memberColumns+` from staff where lower(email) = lower($1)`, m.Email), scanMember)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m.ID, m.Name = old.ID, old.Name
	if err := updateMember(ctx, tx, m); err != nil {
		return false, err
	}
	if err := endSignIns(ctx, tx, m.ID); err != nil {
		return false, err
	}
	e.Action, e.ObjectID, e.Before = "staff.change", strconv.FormatInt(m.ID, 10), old.Shown()
	return true, pg.InsertAudit(ctx, tx, e)
}

// endSignIns ends every sign-in of the member. It also removes the member's browsers from
// notifications, including browsers whose sign-in ended by its age.
func endSignIns(ctx context.Context, tx pgx.Tx, id int64) error {
	if _, err := tx.Exec(ctx, `update sign_ins set revoked_at = now() where staff_id = $1 and revoked_at is null`, id); err != nil {
		return err
	}
	return forgetBrowsers(ctx, tx, staff.Revocation{StaffID: id})
}

// forgetBrowsers removes the browsers of the sign-ins that r selects.
func forgetBrowsers(ctx context.Context, tx pgx.Tx, r staff.Revocation) error {
	_, err := tx.Exec(ctx, `delete from staff_browsers where staff_id = $1 and ($2 = '' or sign_in::text = $2) and ($3 = '' or sign_in::text <> $3)`,
		r.StaffID, r.Only, r.Except)
	return err
}

// lockAdmins lets one transaction at a time decide which members are admins. The lock conflicts
// with itself and does not block reads.
func lockAdmins(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `lock table staff in share row exclusive mode`)
	return err
}

// SaveMember returns [staff.ErrLastAdmin] if no admin could manage staff any
// more, and [staff.ErrEmailTaken] if the address is in use.
func (s Staff) SaveMember(ctx context.Context, m staff.Member, revoke bool, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockAdmins(ctx, tx); err != nil {
			return err
		}
		if err := updateMember(ctx, tx, m); err != nil {
			return err
		}
		var admins int
		err := tx.QueryRow(ctx, `select count(*) from staff where `+managing).Scan(&admins)
		if err != nil {
			return err
		}
		if admins == 0 {
			return staff.ErrLastAdmin
		}
		if revoke {
			if err := endSignIns(ctx, tx, m.ID); err != nil {
				return err
			}
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// updateMember stores m. It removes a password link that was sent to another address, or that
// belongs to a member who is now disabled.
func updateMember(ctx context.Context, tx pgx.Tx, m staff.Member) error {
	_, err := tx.Exec(ctx, `
		delete from password_links l using staff s
		where l.staff_id = $1 and s.id = $1 and (lower(s.email) <> lower($2) or $3)`, m.ID, m.Email, m.DisabledAt != nil)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		update staff set sso_issuer = case when lower(email) = lower(@email) then sso_issuer else '' end,
			sso_subject = case when lower(email) = lower(@email) then sso_subject else '' end, email = @email, name = @name, role = @role, shops = @shops, password_hash = @password_hash,
			disabled_at = @disabled_at, updated_at = now()
		where id = @id`, pgx.StrictNamedArgs{"id": m.ID, "email": m.Email, "name": m.Name, "role": m.Role,
		"shops": append([]int64{}, m.Shops...), "password_hash": m.PasswordHash, "disabled_at": m.DisabledAt})
	switch {
	case pg.Violates(err, "staff_email"):
		return staff.ErrEmailTaken
	case err != nil:
		return err
	case tag.RowsAffected() == 0:
		return staff.ErrNotFound
	}
	return nil
}

// SavePassword replaces a member's password hash.
func (s Staff) SavePassword(ctx context.Context, id int64, hash string, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update staff set password_hash = $2, updated_at = now() where id = $1`, id, hash); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// SavePreferences changes language and theme only. The audit log gets no record.
func (s Staff) SavePreferences(ctx context.Context, id int64, locale, theme string) error {
	_, err := s.Pool.Exec(ctx, `update staff set locale = $2, theme = $3 where id = $1`, id, locale, theme)
	return pg.Translate(err)
}

// InsertSignIn stores a new sign-in and, in the same transaction, the entry.
func (s Staff) InsertSignIn(ctx context.Context, in staff.SignIn, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := insertSignIn(ctx, tx, in); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// LinkIdentity links the member to a person at the identity provider and stores the sign-in; see
// [staff.Store]. If two persons are to be linked concurrently, one of them is linked.
func (s Staff) LinkIdentity(ctx context.Context, in staff.SignIn, who staff.Identity, e staff.Entry) error {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		linked := staff.ErrSingleSignOn.Because("the member of staff is linked to another person at the identity provider")
		if err := pg.Change(ctx, tx, linked, `update staff set sso_issuer = $2, sso_subject = $3 where id = $1 and (sso_issuer <> $2 or sso_subject in ('', $3))`, in.StaffID, who.Issuer, who.Subject); err != nil {
			return err
		}
		if err := insertSignIn(ctx, tx, in); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
	if pg.Violates(err, "staff_identity") { // another sign-in of the person linked them first
		return staff.ErrSingleSignOn.Because("the person is linked to another member of staff")
	}
	return err
}

func insertSignIn(ctx context.Context, tx pgx.Tx, in staff.SignIn) error {
	_, err := tx.Exec(ctx, `
		insert into sign_ins (id, staff_id, ip, user_agent, created_at, last_seen_at, method)
		values (@id, @member, @ip, @agent, @created, @seen, @method)`,
		pgx.NamedArgs{"id": in.ID, "member": in.StaffID, "ip": in.IP, "agent": in.UserAgent, "created": in.CreatedAt,
			"seen": in.LastSeenAt, "method": cmp.Or(in.Method, staff.ByPassword)})
	return err
}

// SignInAddresses returns the distinct latest addresses from which the member with the e-mail
// address has signed in since the instant.
func (s Staff) SignInAddresses(ctx context.Context, email string, since time.Time) ([]string, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[string], `
		select i.ip from sign_ins i join staff m on m.id = i.staff_id
		where lower(m.email) = lower($1) and i.created_at > $2
		group by i.ip order by max(i.created_at) desc limit 100`, email, since)
}

// Record stores an entry about an action that changes no other row.
func (s Staff) Record(ctx context.Context, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error { return pg.InsertAudit(ctx, tx, e) })
}

// Present returns the member of a valid sign-in. It records that the member was seen, at most
// once a minute. If the sign-in is not valid it returns [staff.ErrUnauthenticated].
func (s Staff) Present(ctx context.Context, signInID string, now time.Time) (p staff.Presence, err error) {
	err = s.Pool.QueryRow(ctx, `
		with seen as (
			update sign_ins set last_seen_at = $2
			where id = $1 and revoked_at is null and last_seen_at < $2::timestamptz - interval '1 minute'
		)
		select i.method, `+memberColumns+`
		from sign_ins i join staff on staff.id = i.staff_id
		where i.id = $1 and i.revoked_at is null and staff.disabled_at is null`, signInID, now).
		Scan(append([]any{&p.Method}, memberTargets(&p.Member)...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, staff.ErrUnauthenticated
	}
	return p, pg.Translate(err)
}

// signInLife is how long after a sign-in its session can last at most.
const signInLife = `interval '7 days'`

// SignIns lists the sign-ins that still hold, the latest first.
func (s Staff) SignIns(ctx context.Context, staffID int64) ([]staff.SignIn, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[staff.SignIn], `
		select id::text, staff_id, ip, user_agent, created_at, last_seen_at, revoked_at, method from sign_ins
		where staff_id = $1 and revoked_at is null and created_at > now() - `+signInLife+`
		order by created_at desc limit 100`, staffID)
}

// RevokeSignIns ends the selected sign-ins, together with the notifications in their browsers,
// and returns the number of ended sign-ins.
func (s Staff) RevokeSignIns(ctx context.Context, r staff.Revocation) (ended int, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		// Ids are compared as text: an id that is not a UUID then selects nothing.
		tag, err := tx.Exec(ctx, `
			update sign_ins set revoked_at = $4
			where staff_id = $1 and revoked_at is null and ($2 = '' or id::text = $2) and ($3 = '' or id::text <> $3)`,
			r.StaffID, r.Only, r.Except, r.At)
		if err != nil {
			return err
		}
		ended = int(tag.RowsAffected())
		if err := forgetBrowsers(ctx, tx, r); err != nil || ended == 0 || r.Entry == nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, *r.Entry)
	})
	return ended, err
}
