package coupons_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// codeKeys has keys that are not secret.
func codeKeys(t testing.TB, text string) *redeemcode.Keyring {
	t.Helper()
	k, err := redeemcode.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const (
	keyOne = "1:YSBrZXkgb2YgMzIgYnl0ZXMsIGZvciB0ZXN0cyBvbmU="
	keyTwo = "2:YSBrZXkgb2YgMzIgYnl0ZXMsIGZvciB0ZXN0cyB0d28="
)

// codeFixture is a database with redeem codes.
type codeFixture struct {
	*fixture
	codes couponsdb.Codes
	staff *redeemcode.Service
	maker *redeemcode.Generator
}

func newCodeFixture(t *testing.T) *codeFixture {
	w := newFixture(t)
	m := &codeFixture{fixture: w, codes: couponsdb.NewCodes(w.DB)}
	m.use(keyOne)
	return m
}

// place makes later batches begin after the serial number that at returns.
func (m *codeFixture) place(at func(n int64) int64) {
	m.codes.Random = func(n int64) (int64, error) { return at(n), nil }
	m.use(keyOne)
}

// use gives the code generator other keys.
func (m *codeFixture) use(text string) {
	m.Helper()
	keys := codeKeys(m, text)
	m.staff = &redeemcode.Service{Store: m.codes, Keys: keys, Now: pgtest.Clock}
	m.maker = &redeemcode.Generator{Store: m.codes, Keys: keys, PartsPerStep: 1}
}

// byCode returns an open template whose coupons are obtained by code.
func (m *codeFixture) byCode(stock int64, limit int) template.Template {
	m.Helper()
	s := pgtest.Spec(time.Hour)
	s.Obtain, s.Stock, s.PerUserLimit = template.ByCode, stock, limit
	t, err := m.Service.Create(m.Context(), staff.System(), s, "")
	m.Must(err)
	t, err = m.Service.Do(m.Context(), staff.System(), t.ID, 0, template.Publishing, "test")
	m.Must(err)
	m.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, t.ID)
	return t
}

func (m *codeFixture) generate(t template.Template, count int64) redeemcode.Batch {
	m.Helper()
	b, err := m.staff.Generate(m.Context(), pgtest.Clerk, t.ID, count, "")
	m.Must(err)
	return b
}

// step performs and saves the next step of a batch's job, as a worker would.
func (m *codeFixture) step(b redeemcode.Batch) job.Progress {
	m.Helper()
	jobs := m.Jobs
	l, err := jobs.LeaseJob(m.Context(), b.JobID, []string{redeemcode.JobKind}, time.Minute)
	m.Must(err)
	p, err := m.maker.Step(m.Context(), l.Job)
	m.Must(err)
	_, err = jobs.SaveJob(m.Context(), l, p, time.Minute)
	m.Must(err)
	if !p.Finished {
		m.Must(jobs.ReleaseJob(m.Context(), l))
	}
	return p
}

func (m *codeFixture) ready(t template.Template, count int64) redeemcode.Batch {
	m.Helper()
	b := m.generate(t, count)
	for !m.step(b).Finished {
	}
	return m.batch(b.ID)
}

func (m *codeFixture) batch(id int64) redeemcode.Batch {
	m.Helper()
	b, err := m.codes.Batch(m.Context(), id)
	m.Must(err)
	return b
}

// csv exports the codes of a batch, or of all batches.
func (m *codeFixture) csv(t template.Template, batch int64) (string, error) {
	m.Helper()
	x, err := m.staff.Export(m.Context(), pgtest.Clerk, t.ID, batch)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = m.staff.Write(m.Context(), x, &b)
	return b.String(), err
}

// export returns a batch's codes in order.
func (m *codeFixture) export(t template.Template, batch int64) []string {
	m.Helper()
	text, err := m.csv(t, batch)
	m.Must(err)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != "code,batch_id" {
		m.Fatalf("heading: %q", lines[0])
	}
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], ",")
	}
	return lines[1:]
}

func (m *codeFixture) is(err error, want *fault.Fault) {
	m.Helper()
	if !errors.Is(err, want) {
		m.Fatalf("%v, want %s", err, want.Code)
	}
}
