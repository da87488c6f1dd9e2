package consoletest

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	tables "dropbell/adapters/sheet"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// WorkPeople runs the waiting jobs about users, as a worker would.
func (g *Fixture) WorkPeople() {
	g.Helper()
	segments, files := g.Stores.Segments, tables.Tables{Open: g.Stores.Uploads.OpenUpload}
	importer := &user.Importer{Store: g.Stores.Users, Tables: files, Now: time.Now}
	w := &job.Worker{Store: g.Stores.Jobs, Queue: idle{}, LeaseFor: time.Minute, Turn: time.Minute, Now: time.Now, Random: func() float64 { return 0 },
		Runners: map[string]job.Runner{user.CheckJob: importer, user.ImportJob: importer,
			segment.CountJob: &segment.Counter{Store: segments, Now: time.Now}, segment.ListJob: &segment.Filler{Store: segments, Tables: files, Now: time.Now}}}
	due, err := g.Stores.Jobs.DueJobs(g.Context(), []string{user.CheckJob, user.ImportJob, segment.CountJob, segment.ListJob}, 100)
	g.Must(err)
	for _, id := range due {
		g.Must(w.Run(g.Context(), id))
	}
}

// Upload sends a form with a file after the other fields.
func (b *Browser) Upload(path, name, content string, fields ...string) Answer {
	b.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		b.Must(form.WriteField(fields[i], fields[i+1]))
	}
	part, err := form.CreateFormFile("file", name)
	b.Must(err)
	_, err = part.Write([]byte(content))
	b.Must(err)
	b.Must(form.Close())
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.Server.URL+path, &body)
	b.Must(err)
	for k := range b.Header {
		req.Header.Set(k, b.Header.Get(k))
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	res, err := b.Client.Do(req)
	b.Must(err)
	defer res.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(res.Body)
	b.Must(err)
	return Answer{b.T, "POST " + path, res.StatusCode, res.Header, text.String()}
}

// Number returns the number that the statement selects.
func (g *Fixture) Number(sql string, args ...any) (n int64) {
	g.Helper()
	g.Must(g.SQL.QueryRow(g.Context(), sql, args...).Scan(&n))
	return n
}

// Chinese is the browser of a marketer whose language is Chinese.
func (g *Fixture) Chinese() *Browser {
	b := g.As(staff.Marketer)
	b.Header.Set("Accept-Language", "zh-CN")
	return b
}

// Wrote stores a campaign of the shop that has reached the users, or is still running, and returns
// its id.
func (g *Fixture) Wrote(name string, shop int64, done bool, users ...uint64) (id int64) {
	g.Helper()
	due := roaring64.New()
	due.AddMany(users)
	raw, err := due.ToBytes()
	g.Must(err)
	var sent []byte
	if done {
		sent = raw
	}
	g.Must(g.SQL.QueryRow(g.Context(), `insert into campaigns (shop_number, name, channel, content, audience, starts_at, ends_at, state, creator, created_by, started_at)
		values ($1, $2, 0, '{"variants": [{"percent": 100, "texts": {"": {"title": "Hello", "body": "Come"}}}]}', '{"kind": "all"}', now(), now() + interval '1 hour', 'running', 'x', 'x', clock_timestamp()) returning id`,
		shop, name).Scan(&id))
	g.Exec(`insert into batches (kind, owner_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count, sent, started_at)
		values ('campaign', $1, 0, $2, $3, 'running', now(), now() + interval '1 hour', $4, $5, $6, now())`, id, due.Minimum(), due.Maximum(), raw, due.GetCardinality(), sent)
	return id
}
