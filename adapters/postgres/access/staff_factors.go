package access

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
)

// Factors lists the member's second factors, the oldest first.
func (s Staff) Factors(ctx context.Context, staffID int64) ([]staff.Factor, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[staff.Factor], `
		select id, staff_id, kind, name, handle, secret, counter, created_at, used_at
		from second_factors where staff_id = $1 order by id`, staffID)
}

// NewFactorID draws the id of a new second factor.
func (s Staff) NewFactorID(ctx context.Context) (int64, error) {
	return pg.NewID(ctx, s.DB, "second_factors")
}

// InsertFactor stores a second factor under its id. If the member has no recovery codes, it also
// stores the hashes of new recovery codes.
func (s Staff) InsertFactor(ctx context.Context, f staff.Factor, hashes [][]byte, e staff.Entry) (codesUsed bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		n, err := lockFactors(ctx, tx, f.StaffID)
		if err != nil {
			return err
		}
		if n >= staff.MaxFactors {
			return staff.ErrManyFactors
		}
		_, err = tx.Exec(ctx, `
			insert into second_factors (id, staff_id, kind, name, handle, secret, counter)
			overriding system value values (@id, @member, @kind, @name, @handle, @secret, @counter)`,
			pgx.NamedArgs{"id": f.ID, "member": f.StaffID, "kind": f.Kind, "name": f.Name, "handle": f.Handle, "secret": f.Secret, "counter": f.Counter})
		if pg.Violates(err, "second_factors_handle") || pg.Violates(err, "second_factors_pkey") {
			return staff.ErrFactorTaken
		}
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			insert into recovery_codes (staff_id, hash) select $1, unnest($2::bytea[])
			where not exists (select from recovery_codes where staff_id = $1)`, f.StaffID, hashes)
		codesUsed = tag.RowsAffected() > 0
		if err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
	return codesUsed && err == nil, err
}

// lockFactors lets one transaction at a time change the member's second factors, and returns the
// number of these factors.
func lockFactors(ctx context.Context, tx pgx.Tx, staffID int64) (n int, err error) {
	if _, err := tx.Exec(ctx, `select from staff where id = $1 for update`, staffID); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `select count(*) from second_factors where staff_id = $1`, staffID).Scan(&n)
	return n, err
}

// RenameFactor returns [staff.ErrFactorNotFound] if the member has no such factor.
func (s Staff) RenameFactor(ctx context.Context, staffID, id int64, name string, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, staff.ErrFactorNotFound, `update second_factors set name = $3 where staff_id = $1 and id = $2`, staffID, id, name); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// RemoveFactor removes one second factor. With the last second factor it removes the recovery
// codes. It returns [staff.ErrLastFactor] if keepOne is set and the factor is the last.
func (s Staff) RemoveFactor(ctx context.Context, f staff.Factor, keepOne bool, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		n, err := lockFactors(ctx, tx, f.StaffID)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `delete from second_factors where staff_id = $1 and id = $2`, f.StaffID, f.ID)
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0:
			return staff.ErrFactorNotFound
		case n == 1 && keepOne:
			return staff.ErrLastFactor
		case n == 1:
			if _, err := tx.Exec(ctx, `delete from recovery_codes where staff_id = $1`, f.StaffID); err != nil {
				return err
			}
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// UseProof marks the proof as used and stores the sign-in, if in is not nil. It returns
// [staff.ErrSecondFactor] if the proof was used before.
func (s Staff) UseProof(ctx context.Context, staffID int64, p staff.Proof, in *staff.SignIn, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := useProof(ctx, tx, staffID, p); err != nil {
			return err
		}
		if in != nil {
			if err := insertSignIn(ctx, tx, *in); err != nil {
				return err
			}
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

func useProof(ctx context.Context, tx pgx.Tx, staffID int64, p staff.Proof) error {
	// Of two transactions the second waits for the row lock, and then finds that its condition
	// is no longer true.
	sql, args := `update recovery_codes set used_at = now() where staff_id = @member and hash = @hash and used_at is null`,
		pgx.NamedArgs{"member": staffID, "hash": p.RecoveryHash}
	if p.Factor.ID != 0 {
		sql, args = `
			update second_factors set counter = @counter, secret = @secret, used_at = now()
			where staff_id = @member and id = @id and counter < @counter`,
			pgx.NamedArgs{"member": staffID, "id": p.Factor.ID, "counter": p.Factor.Counter, "secret": p.Factor.Secret}
	}
	return pg.Change(ctx, tx, staff.ErrSecondFactor, sql, args)
}

// RecoveryCodesLeft returns how many of the member's codes were not used yet.
func (s Staff) RecoveryCodesLeft(ctx context.Context, staffID int64) (n int, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from recovery_codes where staff_id = $1 and used_at is null`, staffID).Scan(&n)
	return n, pg.Translate(err)
}

// ReplaceRecoveryCodes makes the hashes the member's only recovery codes. It
// returns [staff.ErrFactorNotFound] if the member has no second factor.
func (s Staff) ReplaceRecoveryCodes(ctx context.Context, staffID int64, hashes [][]byte, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		n, err := lockFactors(ctx, tx, staffID)
		if err != nil {
			return err
		}
		if n == 0 {
			return staff.ErrFactorNotFound
		}
		if _, err := tx.Exec(ctx, `delete from recovery_codes where staff_id = $1`, staffID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into recovery_codes (staff_id, hash) select $1, unnest($2::bytea[])`, staffID, hashes); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// ResetFactors removes the member's second factors, recovery codes and link to a person at the
// identity provider. It ends the member's sign-ins and returns the number of removed factors.
func (s Staff) ResetFactors(ctx context.Context, staffID int64, e staff.Entry) (n int, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if n, err = lockFactors(ctx, tx, staffID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from second_factors where staff_id = $1`, staffID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from recovery_codes where staff_id = $1`, staffID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update staff set sso_issuer = '', sso_subject = '' where id = $1`, staffID); err != nil {
			return err
		}
		if err := endSignIns(ctx, tx, staffID); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
	return n, err
}

// Policy returns whether second factors are demanded.
func (s Staff) Policy(ctx context.Context) (p staff.Policy, err error) {
	err = s.Pool.QueryRow(ctx, `select second_factor from console_settings`).Scan(&p)
	return p, pg.Translate(err)
}

// SavePolicy stores whether second factors are demanded.
func (s Staff) SavePolicy(ctx context.Context, p staff.Policy, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update console_settings set second_factor = $1`, p); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}
