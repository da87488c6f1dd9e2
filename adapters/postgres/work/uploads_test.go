package work_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

func TestUploadComesBackAsItWas(t *testing.T) {
	w := newFixture(t)
	uploads := workdb.NewUploads(w.DB)
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1_000_000} {
		content := make([]byte, size)
		_, _ = random.Read(content)
		u, err := uploads.SaveUpload(t.Context(), `C:\lists\people.csv`, iotest.HalfReader(bytes.NewReader(content)), 1_000_000, pgtest.Clerk)
		w.Must(err)
		sum := sha256.Sum256(content)
		if u.Name != "people.csv" || u.Bytes != int64(size) || !bytes.Equal(u.SHA256, sum[:]) || u.CreatedBy != "staff:7 Ada Okafor" {
			t.Errorf("%d bytes: %+v", size, u)
		}
		r, err := uploads.OpenUpload(t.Context(), u.ID)
		w.Must(err)
		got, err := io.ReadAll(r)
		w.Must(err)
		w.Must(r.Close())
		if !bytes.Equal(got, content) {
			t.Errorf("%d bytes came back as %d, or others", size, len(got))
		}
	}
}

// Reading at any place is like reading from memory.
func TestUploadReadAnywhere(t *testing.T) {
	w := newFixture(t)
	uploads := workdb.NewUploads(w.DB)
	content := make([]byte, 700_000)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(content)
	u, err := uploads.SaveUpload(t.Context(), "x", bytes.NewReader(content), 1<<20, pgtest.Clerk)
	w.Must(err)
	r, err := uploads.OpenUpload(t.Context(), u.ID)
	w.Must(err)
	memory := bytes.NewReader(content)
	rapid.Check(t, func(rt *rapid.T) {
		at, n := rapid.Int64Range(0, 800_000).Draw(rt, "at"), rapid.IntRange(0, 300_000).Draw(rt, "n")
		a, b := make([]byte, n), make([]byte, n)
		na, errA := r.(io.ReaderAt).ReadAt(a, at)
		nb, errB := memory.ReadAt(b, at)
		if na != nb || !bytes.Equal(a, b) || n > 0 && !errors.Is(errA, errB) {
			rt.Fatalf("%d bytes (%v), want %d (%v)", na, errA, nb, errB)
		}
		pa, errA := r.(io.Seeker).Seek(at, io.SeekStart)
		pb, errB := memory.Seek(at, io.SeekStart)
		if pa != pb || errA != nil || errB != nil {
			rt.Fatalf("at %d, want %d", pa, pb)
		}
		na, _ = io.ReadFull(r, a)
		nb, _ = io.ReadFull(memory, b)
		if na != nb || !bytes.Equal(a[:na], b[:nb]) {
			rt.Fatalf("read %d, want %d", na, nb)
		}
	})
}

func TestUploadThatIsNotWhole(t *testing.T) {
	w := newFixture(t)
	uploads := workdb.NewUploads(w.DB)
	if _, err := uploads.SaveUpload(t.Context(), "x", bytes.NewReader(make([]byte, 300_001)), 300_000, pgtest.Clerk); !errors.Is(err, job.ErrUploadTooLarge) {
		t.Errorf("too large: %v", err)
	}
	broken := errors.New("the connection broke")
	if _, err := uploads.SaveUpload(t.Context(), "x", io.MultiReader(bytes.NewReader(make([]byte, 300_000)), iotest.ErrReader(broken)), 1<<20, pgtest.Clerk); !errors.Is(err, broken) {
		t.Errorf("broken off: %v", err)
	}
	if n := w.Number(`select (select count(*) from uploads) + (select count(*) from upload_parts)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	// The half upload of a process that died can be neither read nor used.
	w.Exec(`insert into uploads (name, created_by) values ('half', 'x')`)
	id := w.Number(`select id from uploads`)
	if _, err := uploads.OpenUpload(t.Context(), id); !errors.Is(err, job.ErrUploadNotFound) {
		t.Errorf("opened: %v", err)
	}
	service := &job.Service{Store: workdb.NewJobs(w.DB)}
	for _, key := range []string{"", "k"} {
		if _, err := service.Start(t.Context(), pgtest.Clerk, job.New{Kind: "x", Title: "x", UploadID: id, RequestKey: key}, staff.ManageTemplates); !errors.Is(err, job.ErrUploadNotFound) {
			t.Errorf("started: %v", err)
		}
	}
}

func TestOldJobsAndUploadsAreRemoved(t *testing.T) {
	s := newJobFixture(t)
	save := func() int64 {
		u, err := s.jobs.SaveUpload(t.Context(), "x", bytes.NewReader(make([]byte, 600_000)), 1<<20, pgtest.Clerk)
		s.Must(err)
		return u.ID
	}
	used, needed, unused, fresh := save(), save(), save(), save()
	over, going, recent := s.start(job.New{UploadID: used}), s.start(job.New{UploadID: needed}), s.start(job.New{})
	s.Exec(`insert into uploads (name, created_by, created_at) values ('half', 'x', now() - interval '8 days')`)
	s.Exec(`insert into job_errors (job_id, line, row, error) select $1, n, '', '' from generate_series(1, 12000) n`, over.ID)
	s.Exec(`update jobs set created_at = now() - interval '40 days'`)
	s.Exec(`update jobs set state = 'done', finished_at = now() - interval '31 days' where id = $1`, over.ID)
	s.Exec(`update jobs set state = 'done', finished_at = now() - interval '29 days' where id = $1`, recent.ID)
	s.Exec(`update uploads set created_at = now() - interval '8 days' where id = any($1)`, []int64{used, needed, unused})
	keep := workdb.Retention{Jobs: 30 * pgtest.Day, Uploads: 7 * pgtest.Day}
	for range 2 {
		_, err := workdb.NewHousekeeping(s.DB).Clean(context.WithoutCancel(t.Context()), keep, 0)
		s.Must(err)
	}
	if n := s.Number(`select count(*) from jobs where id = any($1)`, []int64{going.ID, recent.ID}); n != 2 || s.Number(`select count(*) from jobs`) != 2 {
		t.Errorf("%d of the jobs that stay", n)
	}
	if n := s.Number(`select count(*) from uploads where id = any($1)`, []int64{needed, fresh}); n != 2 || s.Number(`select count(*) from uploads`) != 2 {
		t.Errorf("%d of the uploads that stay", n)
	}
	if n := s.Number(`select count(*) from upload_parts`); n != 6 || s.Number(`select count(*) from job_errors`) != 0 {
		t.Errorf("%d parts are left, want 6", n)
	}
	if got := s.job(going.ID); got.UploadID != needed {
		t.Errorf("%+v", got)
	}
}
