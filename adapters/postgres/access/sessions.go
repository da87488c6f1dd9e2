package access

import (
	"context"
	"dropbell/adapters/postgres/internal/pg"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sessions stores the console's browser sessions for
// github.com/alexedwards/scs/v2 (its Store and CtxStore). Tokens arrive hashed.
type Sessions struct{ *pg.DB }

// NewSessions returns the session store of db.
func NewSessions(db *pg.DB) Sessions { return Sessions{db} }

// sessionTimeout bounds the calls that come without a context.
const sessionTimeout = 5 * time.Second

// FindCtx returns the data of a session that has not expired.
func (s Sessions) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = s.Pool.QueryRow(ctx, `select data from sessions where token = $1 and expiry > now()`, token).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return data, err == nil, pg.Translate(err)
}

// CommitCtx stores a session until expiry.
func (s Sessions) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	_, err := s.Pool.Exec(ctx, `insert into sessions (token, data, expiry) values ($1, $2, $3)
		on conflict (token) do update set data = excluded.data, expiry = excluded.expiry`, token, data, expiry)
	return pg.Translate(err)
}

// ExtendCtx sets the end of a session, which has been used, to expiry, and changes nothing
// further. Ends that differ by less than a minute count as equal. A deleted session is not
// restored.
func (s Sessions) ExtendCtx(ctx context.Context, token string, expiry time.Time) error {
	_, err := s.Pool.Exec(ctx, `update sessions set expiry = $2 where token = $1 and expiry < $2::timestamptz - interval '1 minute'`, token, expiry)
	return pg.Translate(err)
}

// DeleteCtx forgets a session, if there is one.
func (s Sessions) DeleteCtx(ctx context.Context, token string) error {
	_, err := s.Pool.Exec(ctx, `delete from sessions where token = $1`, token)
	return pg.Translate(err)
}

// Find is [Sessions.FindCtx] for callers without a context.
func (s Sessions) Find(token string) ([]byte, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	return s.FindCtx(ctx, token)
}

// Commit is [Sessions.CommitCtx] for callers without a context.
func (s Sessions) Commit(token string, data []byte, expiry time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	return s.CommitCtx(ctx, token, data, expiry)
}

// Delete is [Sessions.DeleteCtx] for callers without a context.
func (s Sessions) Delete(token string) error {
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	return s.DeleteCtx(ctx, token)
}

// DeleteExpired removes up to limit expired sessions, and sign-ins that ended long ago. It
// returns the number of removed sessions. Call it again while it returns limit.
func (s Sessions) DeleteExpired(ctx context.Context, limit int) (int, error) {
	_, err := s.Pool.Exec(ctx, `delete from sign_ins where id in (
		select id from sign_ins where created_at < now() - interval '90 days' limit $1)`, limit)
	if err != nil {
		return 0, pg.Translate(err)
	}
	tag, err := s.Pool.Exec(ctx, `delete from sessions where token in (
		select token from sessions where expiry <= now() order by expiry limit $1)`, limit)
	return int(tag.RowsAffected()), pg.Translate(err)
}
