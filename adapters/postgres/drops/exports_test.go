package drops_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/exporttest"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/export"
	"dropbell/domain/user"
)

// exporting is a drop that is over, with three coupons, and a store of files.
type exporting struct {
	*fixture
	files exporttest.Memory
	store dropsdb.Exports
	drop  int64
	dir   string
}

func newExporting(t *testing.T) *exporting {
	f := &exporting{fixture: newFixture(t)}
	f.store = dropsdb.NewExports(f.DB)
	tpl := f.Published(2 * time.Hour)
	f.drop, f.dir = tpl.ID, fmt.Sprintf("exports/%d/%d/", tpl.ShopNumber, tpl.ID)
	f.Reserve(tpl, 1, pgtest.Reminders(delivery.App, 5)...)
	f.Reserve(tpl, 2, pgtest.Reminders(delivery.App, 5, 10)...)
	f.Exec(`update templates set issued = 3 where id = $1`, f.drop)
	f.Exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at, state, order_id, discount, used_at)
		select $1, n, n, 'claim', now(), now() + interval '1 day', case n when 1 then 'used' else 'unused' end, case n when 1 then 'A,"1' else '' end, 0, case n when 1 then now() end from generate_series(1, 3) n`, f.drop)
	f.Exec(`insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, order_amount, discount)
		select id, order_id, 'confirm', 'done', 'locked', 'used', 6000, 500 from coupons where state = 'used'`)
	return f
}

// over ends the drop, and lets night come.
func (f *exporting) over() {
	f.Exec(`update templates set state = 'closed', ended_at = now() where id = $1`, f.drop)
	f.night()
}

func (f *exporting) night() {
	f.Exec(`update exports set due_at = now() - interval '1 minute' where due_at is not null`)
}

func (f *exporting) run() error {
	return (&export.Exporter{Store: f.store, Files: &f.files}).Run(f.Context())
}

// read returns the lines of a file that the manifest names, and compares the file with what the
// manifest says of it.
func (f *exporting) read(m export.Manifest, name string) (lines [][]string) {
	f.Helper()
	for _, x := range m.Files {
		if x.Name != name+".csv.gz" {
			continue
		}
		content := f.files.Read(f.dir + x.Name)
		sum := sha256.Sum256(content)
		z, err := gzip.NewReader(bytes.NewReader(content))
		f.Must(err)
		lines, err = csv.NewReader(z).ReadAll()
		f.Must(err)
		if int64(len(content)) != x.Bytes || hex.EncodeToString(sum[:]) != x.SHA256 || int64(len(lines)) != x.Rows+1 || strings.Join(lines[0], ",") != x.Columns {
			f.Errorf("%s has %d lines and %d bytes, and the manifest says %+v", name, len(lines), len(content), x)
		}
		return lines[1:]
	}
	f.Fatalf("no file %s in %+v", name, m)
	return nil
}

func (f *exporting) manifest() (m export.Manifest) {
	f.Helper()
	f.Must(json.Unmarshal(f.files.Read(f.dir+"manifest.json"), &m))
	return m
}

// TestExports: a drop that is over is exported in the next night, and again when its coupons have
// expired, and then no more.
func TestExports(t *testing.T) {
	f := newExporting(t)
	f.Must(f.run())
	if f.files.Read(f.dir+"manifest.json") != nil {
		t.Fatal("a drop is exported that is not over")
	}
	f.Exec(`update templates set state = 'closed', ended_at = now() where id = $1`, f.drop)
	f.Must(f.run())
	if f.files.Read(f.dir+"manifest.json") != nil {
		t.Fatal("a drop is exported before the night")
	}
	if n := f.Number(`select count(*) from exports x join templates t on t.id = x.template_id join shops s on s.number = t.shop_number
		where x.due_at > t.ended_at and x.due_at <= t.ended_at + interval '25 hours' and extract(hour from x.due_at at time zone s.timezone) = 3`); n != 1 {
		t.Error("the drop is not due at three o'clock of the shop")
	}
	f.night()
	f.Must(f.run())
	m := f.manifest()
	if m.Format != export.Format || m.TemplateID != f.drop || m.Final || m.Issued != 3 || m.State != "closed" || m.At.IsZero() {
		t.Errorf("the manifest is %+v", m)
	}
	coupons, payments, reserved := f.read(m, "coupons"), f.read(m, "payments"), f.read(m, "reservations")
	if len(coupons) != 3 || coupons[0][1] != "1" || coupons[0][3] != "used" || coupons[0][6] != `A,"1` || coupons[1][8] != "" {
		t.Errorf("the coupons are %v", coupons)
	}
	if len(payments) != 1 || payments[0][2] != "confirm" || payments[0][7] != "6000" || len(reserved) != 2 || len(f.read(m, "deliveries")) != 0 {
		t.Errorf("payments %v, reservations %v", payments, reserved)
	}
	f.Must(f.run())
	if again := f.manifest(); !again.At.Equal(m.At) {
		t.Error("the drop is exported twice in a night")
	}
	if n := f.Number(`select count(*) from exports where due_at > now() + interval '1 day' and rows = 6 and bytes > 100`); n != 1 {
		t.Error("the drop is not due again after its coupons have expired")
	}
	f.Exec(`update coupons set expires_at = now() - interval '1 second', state = 'expired' where state = 'unused'`)
	f.Exec(`update coupons set expires_at = now() - interval '1 second'`)
	f.night()
	f.Must(f.run())
	if last := f.manifest(); !last.Final || f.read(last, "coupons")[1][3] != "expired" {
		t.Errorf("the last manifest is %+v", last)
	}
	if n := f.Number(`select count(*) from exports where due_at is null and final`); n != 1 {
		t.Error("the drop is due after its last export")
	}
}

// flaky is a store of files that fails at the n-th file.
type flaky struct {
	*exporttest.Memory
	n int
}

func (s *flaky) Write(ctx context.Context, key string, content io.Reader) error {
	if s.n--; s.n == 0 {
		return export.ErrUnreachable
	}
	return s.Memory.Write(ctx, key, content)
}

// TestAnExportThatFailsIsMadeAnew: until the manifest is stored the drop stays due, wherever the export
// ends.
func TestAnExportThatFailsIsMadeAnew(t *testing.T) {
	f := newExporting(t)
	f.over()
	for n := 1; n <= 5; n++ {
		err := (&export.Exporter{Store: f.store, Files: &flaky{&f.files, n}}).Run(t.Context())
		if !errors.Is(err, export.ErrUnreachable) || strings.Contains(err.Error(), "pipe") || f.files.Read(f.dir+"manifest.json") != nil {
			t.Errorf("the store fails at file %d: %v", n, err)
		}
	}
	if late, err := f.store.Oldest(t.Context()); err != nil || late.IsZero() {
		t.Errorf("the drop that is due has been so since %v, %v", late, err)
	}
	f.Must(f.run())
	if len(f.read(f.manifest(), "coupons")) != 3 {
		t.Error("the coupons are not exported")
	}
	if late, err := f.store.Oldest(t.Context()); err != nil || !late.IsZero() {
		t.Errorf("no drop is due, and it is said to be so since %v, %v", late, err)
	}
}

// spoilt is a store of files that refuses the files of one drop.
type spoilt struct {
	*exporttest.Memory
	dir string
}

var errSpoilt = errors.New("a row that cannot be written")

func (s spoilt) Write(ctx context.Context, key string, content io.Reader) error {
	if strings.HasPrefix(key, s.dir) {
		return errSpoilt
	}
	return s.Memory.Write(ctx, key, content)
}

// TestADropThatFailsHoldsUpNoOther: a drop whose export always fails is due later each time, by the database's clock, and
// the drops behind it are exported in the same run. Its export counts as late since the night.
func TestADropThatFailsHoldsUpNoOther(t *testing.T) {
	f := newExporting(t)
	other := f.Published(2 * time.Hour)
	f.Exec(`update templates set state = 'closed', ended_at = now() where id = $1`, other.ID)
	f.over()
	f.Exec(`update exports set due_at = due_at - interval '1 hour' where template_id = $1`, f.drop)
	since, err := f.store.Oldest(t.Context())
	f.Must(err)
	files := spoilt{&f.files, f.dir}
	for _, minutes := range []int{10, 20, 40} {
		if err := (&export.Exporter{Store: f.store, Files: files}).Run(t.Context()); !errors.Is(err, errSpoilt) {
			t.Fatalf("the failure is told as %v", err)
		}
		if f.Number(`select count(*) from exports where template_id = $1 and due_at between now() + make_interval(mins => $2 - 1) and now() + make_interval(mins => $2)`, f.drop, minutes) != 1 {
			t.Errorf("the drop is not due %d minutes after the failure", minutes)
		}
		if late, err := f.store.Oldest(t.Context()); err != nil || !late.Equal(since) {
			t.Errorf("the export is late since %v, %v, and not since %v", late, err, since)
		}
		f.Exec(`update exports set due_at = now() where template_id = $1`, f.drop)
	}
	if f.files.Read(fmt.Sprintf("exports/%d/%d/manifest.json", other.ShopNumber, other.ID)) == nil {
		t.Error("the drop behind the drop that fails is not exported")
	}
	// A worker that dies leaves the drop for later too.
	dying, die := context.WithCancel(t.Context())
	_, _ = f.store.Next(dying, func(export.Drop, []export.Table) (export.Manifest, error) {
		die()
		return export.Manifest{}, dying.Err()
	})
	if n := f.Number(`select count(*) from exports where template_id = $1 and failures = 4 and due_at > now() + interval '1 hour'`, f.drop); n != 1 {
		t.Error("the drop is due at once after its worker died")
	}
	f.Exec(`update exports set due_at = now() where template_id = $1`, f.drop)
	f.Must(f.run())
	if n := f.Number(`select count(*) from exports where template_id = $1 and failures = 0 and late_since is null`, f.drop); n != 1 {
		t.Error("the failures are not forgotten")
	}
}

// everySecond says that every second user comes through the second door, and the others through the first.
type everySecond struct{}

func (everySecond) Judge(_ context.Context, _ int64, by user.ID) (int, error) {
	return 1 + int(by)%2, nil
}

func (everySecond) Places(_ context.Context, _ int64, users []user.ID) ([]uint8, error) {
	list := make([]uint8, len(users))
	for i, id := range users {
		list[i] = 1 + uint8(id)%2
	}
	return list, nil
}

// TestTheExportNamesDoors: the coupons of a drop with doors have the door of their owner.
func TestTheExportNamesDoors(t *testing.T) {
	f := newExporting(t)
	f.store.Doors = everySecond{}
	f.Exec(`insert into doors (template_id, place, name, who, lead_minutes, share, user_limit, texts) values ($1, 1, 'Members', 'list', 60, 0, 0, '{}'), ($1, 2, 'All', 'all', 0, 0, 0, '{}')`, f.drop)
	f.Exec(`update templates set doors = 2 where id = $1`, f.drop)
	f.over()
	f.Must(f.run())
	var doors []string
	for _, line := range f.read(f.manifest(), "coupons") {
		doors = append(doors, line[len(line)-1])
	}
	if strings.Join(doors, " ") != "2 1 2" {
		t.Errorf("the doors are %v", doors)
	}
}

// TestTwoWorkersExportADropOnce: while one worker exports a drop, another one passes it over.
func TestTwoWorkersExportADropOnce(t *testing.T) {
	f := newExporting(t)
	f.over()
	found, err := f.store.Next(t.Context(), func(d export.Drop, tables []export.Table) (export.Manifest, error) {
		other, err := f.store.Next(t.Context(), func(export.Drop, []export.Table) (export.Manifest, error) {
			t.Error("two workers export one drop")
			return export.Manifest{}, nil
		})
		if other {
			t.Error("the drop that is being exported was found")
		}
		return export.Manifest{}, err
	})
	if !found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}
