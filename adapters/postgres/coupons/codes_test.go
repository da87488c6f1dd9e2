package coupons_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/adapters/localstack"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

func TestCodesAreGeneratedInSteps(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(1000, 1)
	m.maker.PartsPerStep = 0   // as in the worker
	b := m.generate(d, 50_001) // 6 parts, of which the last has one code
	if b.State != redeemcode.Generating || b.Generated != 0 || b.JobState != job.Waiting || b.Stopped() {
		t.Fatalf("begins as %+v", b)
	}
	_, err := m.csv(d, 0)
	m.is(err, redeemcode.ErrNotReady)
	var done []int64
	for {
		p := m.step(b)
		done = append(done, p.Done)
		if got := m.batch(b.ID).Generated; got != p.Done || p.Total != b.Count {
			t.Fatalf("progress %d of %d, batch has %d", p.Done, p.Total, got)
		}
		if p.Finished {
			break
		}
	}
	if want := []int64{50_000, 50_001}; !slices.Equal(done, want) {
		t.Errorf("steps end at %v, want %v", done, want)
	}
	if b = m.batch(b.ID); b.State != redeemcode.Ready || b.ReadyAt == nil || b.JobState != job.Done {
		t.Errorf("ends as %+v", b)
	}
	codes := m.export(d, b.ID)
	seen := map[string]bool{}
	for _, c := range codes {
		seen[c] = true
	}
	if int64(len(codes)) != b.Count || int64(len(seen)) != b.Count {
		t.Errorf("%d codes, %d different, want %d", len(codes), len(seen), b.Count)
	}
	if n := m.Number(`select count(*) from audit where action = 'codes.export' and (after->>'codes')::int = 50001`); n != 1 {
		t.Errorf("%d exports are in the audit log", n)
	}
	if n := m.Number(`select count(*) from outbox where topic = $1`, event.CodesChanged); n != 1 {
		t.Errorf("%d events say that the batch is ready", n)
	}
}

// TestGenerationDiesAnywhere repeats steps, as if a worker had died after storing
// parts and before saving its progress. It also lets two workers do the same
// step.
func TestGenerationDiesAnywhere(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(1000, 1)
	b := m.generate(d, 20_000)
	load := func() job.Job {
		j, err := m.Jobs.Job(t.Context(), b.JobID)
		m.Must(err)
		return j
	}
	for range 2 { // dies each time
		_, err := m.maker.Step(t.Context(), load())
		m.Must(err)
	}
	m.step(b)
	var both sync.WaitGroup
	j := load()
	for range 4 {
		both.Go(func() {
			if p, err := m.maker.Step(context.WithoutCancel(t.Context()), j); err != nil || !p.Finished {
				t.Errorf("one of several: %+v, %v", p, err)
			}
		})
	}
	both.Wait()
	m.step(b)
	if b = m.batch(b.ID); b.State != redeemcode.Ready || b.Generated != b.Count {
		t.Errorf("ends as %+v", b)
	}
	if n := m.Number(`select count(*) from outbox where topic = $1`, event.CodesChanged); n != 1 {
		t.Errorf("%d events say that the batch is ready", n)
	}
	if n := m.Number(`select sum(codes) from code_parts where batch_id = $1`, b.ID); n != 20_000 {
		t.Errorf("%d codes are under checksums", n)
	}
}

// TestExportsAreHeldToTheirChecksums: if a key was replaced under its old number,
// an export fails before worthless codes are printed.
func TestExportsAreHeldToTheirChecksums(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(1000, 1)
	b := m.ready(d, 20)
	first, err := m.csv(d, 0)
	m.Must(err)
	again, err := m.csv(d, b.ID)
	m.Must(err)
	if first != again || first == "" {
		t.Error("two exports differ")
	}
	half := m.generate(d, 20_000)
	m.step(half)
	m.use(strings.Replace(keyTwo, "2:", "1:", 1))
	if text, err := m.csv(d, b.ID); !errors.Is(err, redeemcode.ErrKeyMissing) || text != "" {
		t.Errorf("with another key: %q, %v", text, err)
	}
	j, err := m.Jobs.Job(t.Context(), half.JobID)
	m.Must(err)
	j.Cursor = json.RawMessage(`{"next_part":0}`) // the worker died before saving
	_, err = m.maker.Step(t.Context(), j)
	m.is(err, redeemcode.ErrKeyMissing)
	m.use(keyTwo)
	_, err = m.csv(d, b.ID)
	m.is(err, redeemcode.ErrKeyMissing)
	m.use(keyTwo + "," + keyOne)
	if later, err := m.csv(d, b.ID); err != nil || later != first {
		t.Errorf("after rotation: %v", err)
	}
	if n := m.generate(d, 1); n.Key != 2 {
		t.Errorf("new codes are made with key %d", n.Key)
	}
}

func TestWhoMayGenerateWhat(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(10, 1)
	for _, count := range []int64{0, -1, redeemcode.MaxCount + 1} {
		_, err := m.staff.Generate(t.Context(), pgtest.Clerk, d.ID, count, "")
		if fields, ok := errors.AsType[*fault.Fields](err); !ok || fields.List[0].Name != "count" {
			t.Errorf("%d codes: %v", count, err)
		}
	}
	viewer, elsewhere := pgtest.Clerk, pgtest.Clerk
	viewer.Role, elsewhere.Shops = staff.Viewer, []int64{11}
	for _, by := range []staff.Actor{viewer, elsewhere} {
		_, err := m.staff.Generate(t.Context(), by, d.ID, 1, "")
		m.is(err, staff.ErrForbidden)
		_, err = m.staff.Export(t.Context(), by, d.ID, 0)
		m.is(err, staff.ErrForbidden)
		_, err = m.staff.Revoke(t.Context(), by, d.ID, 1, "because")
		m.is(err, staff.ErrForbidden)
	}
	_, err := m.staff.Batches(t.Context(), elsewhere, redeemcode.Query{TemplateID: d.ID})
	m.is(err, staff.ErrForbidden)
	_, err = m.staff.Generate(t.Context(), pgtest.Clerk, d.ID+1, 1, "")
	m.is(err, template.ErrNotFound)
	byTap := m.Published(time.Hour)
	_, err = m.staff.Generate(t.Context(), pgtest.Clerk, byTap.ID, 1, "")
	m.is(err, redeemcode.ErrNotByCode)
	_, err = m.csv(d, 0)
	m.is(err, redeemcode.ErrNoCodes)
	other := m.byCode(10, 1)
	b := m.ready(other, 1)
	_, err = m.staff.Batch(t.Context(), pgtest.Clerk, d.ID, b.ID)
	m.is(err, redeemcode.ErrBatchNotFound)
	_, err = m.csv(d, b.ID)
	m.is(err, redeemcode.ErrBatchNotFound)
	_, err = m.Service.Do(t.Context(), staff.System(), d.ID, 0, template.Closing, "test")
	m.Must(err)
	_, err = m.staff.Generate(t.Context(), pgtest.Clerk, d.ID, 1, "")
	m.is(err, redeemcode.ErrEnded)
	m.use("")
	_, err = m.staff.Generate(t.Context(), pgtest.Clerk, other.ID, 1, "")
	m.is(err, redeemcode.ErrNoKeys)
	if n := m.Number(`select count(*) from code_batches`); n != 1 {
		t.Errorf("%d batches are stored", n)
	}
}

// TestTemplateChangesWhileGenerating: a decision based on an old state of the
// template must not be stored after the template has changed.
func TestTemplateChangesWhileGenerating(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(10, 1)
	n := redeemcode.NewBatch{TemplateID: d.ID, Count: 5, Key: 1, CreatedBy: "staff:7 Ada"}
	start := func(int64) (job.Job, staff.Entry, error) { panic("never started") }
	m.Exec(`update templates set state = 'cancelled'`)
	_, err := m.codes.CreateBatch(t.Context(), n, start, staff.Entry{})
	m.is(err, redeemcode.ErrEnded)
	m.Exec(`update templates set state = 'draft', obtain = 'claim'`)
	_, err = m.codes.CreateBatch(t.Context(), n, start, staff.Entry{})
	m.is(err, redeemcode.ErrNotByCode)
	n.TemplateID++
	_, err = m.codes.CreateBatch(t.Context(), n, start, staff.Entry{})
	m.is(err, template.ErrNotFound)
	m.Exec(`update templates set state = 'published', obtain = 'code'`)
	m.place(func(n int64) int64 { return n - 1 })
	last := m.ready(d, 5)
	if !last.Holds(redeemcode.MaxSerial) {
		t.Errorf("the last batch begins at %d", last.First)
	}
	_, err = m.staff.Generate(t.Context(), pgtest.Clerk, d.ID, 1, "") // every place that is tried is taken
	m.is(err, redeemcode.ErrNoSerials)
	if len(m.export(d, last.ID)) != 5 {
		t.Error("the last serial numbers have no codes")
	}
}

func TestImpatientFingerGeneratesOnce(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(10, 1)
	var all sync.WaitGroup
	ids := make([]int64, 8)
	for i := range ids {
		all.Go(func() {
			b, err := m.staff.Generate(context.WithoutCancel(t.Context()), pgtest.Clerk, d.ID, 10, "the same form")
			if err != nil {
				t.Error(err)
			}
			ids[i] = b.ID
		})
	}
	all.Wait()
	if len(slices.Compact(ids)) != 1 || m.Number(`select count(*) from jobs where kind = $1`, redeemcode.JobKind) != 1 ||
		m.Number(`select count(*) from code_batches`) != 1 {
		t.Errorf("batches %v", ids)
	}
	if b, err := m.staff.Generate(t.Context(), pgtest.Clerk, d.ID, 10, "another form"); err != nil || b.ID == ids[0] {
		t.Errorf("another form: %d, %v", b.ID, err)
	}
}

// TestARestoredDatabaseHandsOutOtherCodes: batches created after a backup was
// restored share no code with batches that were created after the backup was
// taken.
func TestARestoredDatabaseHandsOutOtherCodes(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(1000, 1)
	kept := m.ready(d, 100)
	before := m.export(d, kept.ID)
	backup := localstack.RestoredElsewhere(t, m.SQL.Config().ConnString())
	lost := map[string]bool{}
	for range 3 {
		for _, code := range m.export(d, m.ready(d, 100).ID) {
			lost[code] = true
		}
	}
	m.Fixture = pgtest.On(t, backup)
	m.codes = couponsdb.NewCodes(m.DB)
	m.use(keyOne)
	if again := m.export(d, kept.ID); !slices.Equal(again, before) {
		t.Error("the codes of a batch that was restored are others")
	}
	for range 3 {
		for _, code := range m.export(d, m.ready(d, 100).ID) {
			if lost[code] {
				t.Fatalf("code %s was handed out before the database was restored, and again afterwards", code)
			}
		}
	}
}

// TestARangeThatIsTakenIsNotGivenAgain: a batch gets the next place that is tried.
func TestARangeThatIsTakenIsNotGivenAgain(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(1000, 1)
	tries := []int64{500, 500, 509, 491, 490, 510}
	m.place(func(int64) int64 { next := tries[0]; tries = tries[1:]; return next })
	for _, want := range []redeemcode.Serial{501, 491, 511} {
		if b := m.generate(d, 10); b.First != want {
			t.Errorf("a batch begins at %d, want %d", b.First, want)
		}
	}
}

// TestLookupIsExact creates batches of random sizes, several at once, and looks
// up their first and last serial numbers and the numbers next to them.
func TestLookupIsExact(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(10, 1)
	var mu sync.Mutex
	var batches []redeemcode.Batch
	var makers sync.WaitGroup
	for range 4 {
		makers.Go(func() {
			for range 25 {
				size := []int64{1, 1, 2, 3, 999, 10_000, 1_000_000}[rand.IntN(7)]
				b, err := m.staff.Generate(context.WithoutCancel(t.Context()), pgtest.Clerk, d.ID, size, "")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				batches = append(batches, b)
				mu.Unlock()
			}
		})
	}
	makers.Wait()
	slices.SortFunc(batches, func(a, b redeemcode.Batch) int { return cmp.Compare(a.First, b.First) })
	end := redeemcode.Serial(1)
	for _, b := range batches { // without an overlap
		if b.First < end {
			t.Fatalf("a batch begins at %d, the one before ends at %d", b.First, end)
		}
		end = b.First + redeemcode.Serial(b.Count)
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := batches[rapid.IntRange(0, len(batches)-1).Draw(rt, "batch")]
		s := b.First + redeemcode.Serial(rapid.Int64Range(0, b.Count-1).Draw(rt, "place"))
		if got, err := m.codes.BatchOf(t.Context(), s); err != nil || got.ID != b.ID {
			rt.Fatalf("%d belongs to %d, found %d: %v", s, b.ID, got.ID, err)
		}
	})
	for _, b := range batches {
		for _, s := range []redeemcode.Serial{b.First, b.First + redeemcode.Serial(b.Count) - 1} {
			if got, err := m.codes.BatchOf(t.Context(), s); err != nil || got.ID != b.ID {
				t.Fatalf("%d belongs to %d, found %d: %v", s, b.ID, got.ID, err)
			}
		}
	}
	for _, s := range []redeemcode.Serial{0, end, end + 1, redeemcode.MaxSerial} {
		_, err := m.codes.BatchOf(t.Context(), s)
		m.is(err, redeemcode.ErrBatchNotFound)
	}
	_, err := m.SQL.Exec(t.Context(), `insert into code_batches (template_id, first_serial, count, key_id, created_by) values ($1, $2, 10, 1, 'x')`, d.ID, int64(end)-1)
	if err == nil || !strings.Contains(err.Error(), "code_batches_apart") {
		t.Errorf("an overlapping batch: %v", err)
	}
}

func TestStoppedGeneration(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(100, 1)
	b := m.generate(d, 20_000)
	m.step(b)
	_, err := (&job.Service{Store: m.Jobs}).Cancel(t.Context(), pgtest.Clerk, b.JobID)
	m.Must(err)
	if b = m.batch(b.ID); !b.Stopped() || b.Generated != 10_000 {
		t.Errorf("after its job was cancelled: %+v", b)
	}
	if supply, err := m.staff.Supply(t.Context(), pgtest.Clerk, d.ID); err != nil || supply.Outstanding != 0 {
		t.Errorf("codes that never work count: %+v, %v", supply, err)
	}
	_, err = m.csv(d, 0)
	m.is(err, redeemcode.ErrNoCodes)
	good := m.ready(d, 2)
	if got := m.export(d, 0); len(got) != 2 {
		t.Errorf("%d codes beside the stopped batch", len(got))
	}
	m.Exec(`delete from jobs where id = $1`, b.JobID)
	if !m.batch(b.ID).Stopped() || m.batch(good.ID).Stopped() {
		t.Error("a cleaned job changes what the batch is")
	}
	// Revoking ends generation.
	c := m.generate(d, 20_000)
	_, err = m.staff.Revoke(t.Context(), pgtest.Clerk, d.ID, c.ID, "changed our minds")
	m.Must(err)
	j, err := m.Jobs.Job(t.Context(), c.JobID)
	m.Must(err)
	_, err = m.maker.Step(t.Context(), j)
	m.is(err, redeemcode.ErrRevoked)
	m.is(m.codes.SaveParts(t.Context(), c, nil), redeemcode.ErrRevoked)
}
