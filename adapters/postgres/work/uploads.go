package work

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// Uploads stores uploaded files until a job has read them. A file is stored in parts, so that
// neither the program nor the database ever holds a whole file in memory.
type Uploads struct{ *pg.DB }

// NewUploads returns the uploads of db.
func NewUploads(db *pg.DB) Uploads { return Uploads{db} }

// uploadPart is how many bytes of a file one row holds.
const uploadPart = 256 << 10

// SaveUpload stores the content of r under the name, part by part. If reading fails, or the file
// has more than limit bytes, the file is removed. If the process dies before, housekeeping
// removes the file, which cannot be read until then. SaveUpload returns [job.ErrUploadTooLarge],
// or the error of r.
func (s Uploads) SaveUpload(ctx context.Context, name string, r io.Reader, limit int64, by staff.Actor) (job.Upload, error) {
	u := job.Upload{Name: uploadName(name), CreatedBy: pg.AuditActor(by)}
	err := s.Pool.QueryRow(ctx, `insert into uploads (name, created_by) values ($1, $2) returning id, created_at`, u.Name, u.CreatedBy).
		Scan(&u.ID, &u.CreatedAt)
	if err != nil {
		return u, pg.Translate(err)
	}
	if err = s.storeParts(ctx, &u, r, limit); err != nil {
		_, _ = s.Pool.Exec(context.WithoutCancel(ctx), `delete from uploads where id = $1`, u.ID) // else housekeeping does
		return job.Upload{}, err
	}
	return u, nil
}

func (s Uploads) storeParts(ctx context.Context, u *job.Upload, r io.Reader, limit int64) error {
	sum, part := sha256.New(), make([]byte, uploadPart)
	r = io.LimitReader(r, limit+1)
	for i := 0; ; i++ {
		n, err := io.ReadFull(r, part)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		last := err != nil
		if u.Bytes += int64(n); u.Bytes > limit {
			return job.ErrUploadTooLarge.Because("the file has more than %d bytes; divide it", limit)
		}
		sum.Write(part[:n])
		if n > 0 {
			if _, err := s.Pool.Exec(ctx, `insert into upload_parts (upload_id, part, content) values ($1, $2, $3)`, u.ID, i, part[:n]); err != nil {
				return pg.Translate(err)
			}
		}
		if last {
			break
		}
	}
	u.SHA256 = sum.Sum(nil)
	return pg.Translate(pg.Change(ctx, s.Pool, job.ErrUploadNotFound, `update uploads set bytes = $2, sha256 = $3 where id = $1`, u.ID, u.Bytes, u.SHA256))
}

// uploadName keeps the last element of the file name that a browser sends.
func uploadName(name string) string {
	name = strings.TrimSpace(brief(name))
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	if r := []rune(name); len(r) > 200 {
		name = string(r[:200])
	}
	if name == "" {
		return "file"
	}
	return name
}

// Upload returns a completely stored file, without its content, or [job.ErrUploadNotFound].
func (s Uploads) Upload(ctx context.Context, id int64) (u job.Upload, err error) {
	err = s.Pool.QueryRow(ctx, `select id, name, bytes, sha256, created_by, created_at, previews from uploads where id = $1 and sha256 is not null`, id).
		Scan(&u.ID, &u.Name, &u.Bytes, &u.SHA256, &u.CreatedBy, &u.CreatedAt, &u.Previews)
	if errors.Is(err, pgx.ErrNoRows) {
		return u, job.ErrUploadNotFound
	}
	return u, pg.Translate(err)
}

// SavePreviews stores the first rows of the tables in the file, for the file's page. It returns
// [job.ErrUploadNotFound].
func (s Uploads) SavePreviews(ctx context.Context, id int64, previews []job.Preview) error {
	return pg.Translate(pg.Change(ctx, s.Pool, job.ErrUploadNotFound, `update uploads set previews = $2 where id = $1`, id, previews))
}

// RemoveUpload removes a file that was refused, unless a job reads it. An absent file is no
// error.
func (s Uploads) RemoveUpload(ctx context.Context, id int64) error {
	_, err := s.Pool.Exec(ctx, `delete from uploads where id = $1 and not exists (select from jobs where upload_id = $1)`, id)
	return pg.Translate(err)
}

// OpenUpload returns a reader of a completely stored file, from its beginning. The reader
// fetches one part at a time with ctx and holds no connection in between. It is also an
// [io.Seeker] and an [io.ReaderAt]. OpenUpload returns [job.ErrUploadNotFound]; the reader
// returns it if the file is removed meanwhile.
func (s Uploads) OpenUpload(ctx context.Context, id int64) (io.ReadCloser, error) {
	u, err := s.Upload(ctx, id)
	if err != nil {
		return nil, err
	}
	return &uploadReader{ctx: ctx, db: s.DB, upload: u, part: -1}, nil
}

// uploadReader reads an upload part by part. All parts except the last have [uploadPart] bytes,
// so that a position determines the part.
type uploadReader struct {
	ctx     context.Context // a reader belongs to one call, as sql.Rows does
	db      *pg.DB
	upload  job.Upload
	at      int64
	part    int64 // -1 = none read yet
	content []byte
}

func (r *uploadReader) Read(p []byte) (int, error) {
	if r.at >= r.upload.Bytes {
		return 0, io.EOF
	}
	if want := r.at / uploadPart; want != r.part {
		err := r.db.Pool.QueryRow(r.ctx, `select content from upload_parts where upload_id = $1 and part = $2`, r.upload.ID, want).Scan(&r.content)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, job.ErrUploadNotFound
		}
		if err != nil {
			return 0, pg.Translate(err)
		}
		r.part = want
	}
	n := copy(p, r.content[r.at%uploadPart:])
	r.at += int64(n)
	return n, nil
}

// ReadAt reads at any position, as archives such as XLSX need.
func (r *uploadReader) ReadAt(p []byte, at int64) (n int, err error) {
	other := *r
	other.at = at
	for n < len(p) && err == nil {
		var k int
		k, err = other.Read(p[n:])
		n += k
	}
	r.part, r.content = other.part, other.content // the next position is mostly near
	return n, err
}

// Seek sets the position of the next read, for example to a job's cursor.
func (r *uploadReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.upload.Bytes
	}
	if offset < 0 {
		return r.at, errors.New("seek before the beginning of the upload")
	}
	r.at = offset
	return offset, nil
}

// Name returns the file name that the sender used.
func (r *uploadReader) Name() string { return r.upload.Name }

func (r *uploadReader) Close() error { return nil }
