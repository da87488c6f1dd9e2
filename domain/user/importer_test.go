package user_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// The names in this package are those of the channels.
func TestChannelNames(t *testing.T) {
	for i, c := range delivery.AllChannels() {
		if user.ChannelNames()[i] != c.String() || c.Bit() != 1<<i {
			t.Errorf("%d: %s", i, c)
		}
	}
}

func TestGuessMapping(t *testing.T) {
	for header, want := range map[string]string{
		"id,name,email,phone,locale,timezone,opt_outs,quiet_hours": "id,name,email,phone,locale,timezone,opt_outs,quiet_hours",
		"User ID,Full Name,E-Mail,Mobile,Language,Time Zone":       "id,name,email,phone,locale,timezone",
		"用户ID,姓名,邮箱,手机号,语言,时区,等级":                                  "id,name,email,phone,locale,timezone,",
		"id,Tier,Last order (EUR),tier,id,,2nd":                    "id,attribute:Tier,attribute:Last_order_EUR,attribute:tier,,,",
		"id,phone,phone_verified":                                  "id,phone,phone_verified",
		"id,phone,verified,Mobile Verified":                        "id,phone,attribute:verified,phone_verified", // an address may be, or the user
		"":                                                         "",
	} {
		var got []string
		for _, t := range user.GuessMapping(strings.Split(header, ",")) {
			got = append(got, string(t))
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s: %s, want %s", header, strings.Join(got, ","), want)
		}
	}
}

func TestMappingCheck(t *testing.T) {
	many := user.Mapping{user.ToID}
	for i := range 51 {
		many = append(many, user.ToAttribute(fmt.Sprint("a", i)))
	}
	for name, c := range map[string]struct {
		m    user.Mapping
		want string
	}{
		"fine":          {user.Mapping{"", user.ToID, user.ToAttribute("tier"), ""}, ""},
		"no id":         {user.Mapping{user.ToName}, "columns"},
		"nothing":       {nil, "columns"},
		"twice":         {user.Mapping{user.ToID, user.ToName, user.ToName}, "columns[2]"},
		"unknown":       {user.Mapping{user.ToID, "shoe"}, "columns[1]"},
		"bad attribute": {user.Mapping{user.ToID, user.ToAttribute("a b")}, "columns[1]"},
		"many":          {many, "columns"},
	} {
		fields, _ := errors.AsType[*fault.Fields](c.m.Check())
		if c.want == "" && fields != nil || c.want != "" && (fields == nil || fields.List[0].Name != c.want) {
			t.Errorf("%s: %v", name, fields)
		}
	}
}

// fakeStore is a store of users who differ by name only; it records its calls.
type fakeStore struct {
	recordingStore
	stored map[user.ID]user.Change
	fail   int // writes until one fails
	seen   []user.CheckedRow
}

func (d *fakeStore) RememberRows(_ context.Context, _ int64, rows []user.CheckedRow, before int64) (known []user.CheckedRow, err error) {
	for _, r := range rows {
		for i := len(d.seen) - 1; i >= 0; i-- {
			if d.seen[i].ID == r.ID && d.seen[i].Line < before {
				known = append(known, d.seen[i])
				break
			}
		}
	}
	d.seen = append(d.seen, rows...)
	return known, nil
}

func (d *fakeStore) ForgetRows(_ context.Context, _ int64, limit int) (int, error) {
	n := min(limit, len(d.seen))
	d.seen = d.seen[n:]
	return n, nil
}

func (d *fakeStore) Upsert(_ context.Context, changes []user.Change, e staff.Entry) error {
	if d.fail--; d.fail == 0 {
		return errors.New("away")
	}
	for _, c := range changes {
		d.stored[c.ID] = c
	}
	d.entries = append(d.entries, e)
	return nil
}

func (d *fakeStore) Compare(_ context.Context, changes []user.Change) (fresh, changed int64, err error) {
	seen := map[user.ID]bool{}
	for _, c := range changes {
		if seen[c.ID] {
			return 0, 0, errors.New("a user twice in one batch")
		}
		seen[c.ID] = true
		before, known := d.stored[c.ID]
		switch {
		case !known:
			fresh++
		case !reflect.DeepEqual(before, c):
			changed++
		}
	}
	return fresh, changed, nil
}

// fakeTable is a table in memory; its position is the next row.
type fakeTable struct {
	rows [][]string
	at   int
}

func (p *fakeTable) OpenTable(_ context.Context, _ int64, _ job.Reading, position json.RawMessage) (job.Rows, error) {
	at := 0
	if len(position) > 0 {
		if err := json.Unmarshal(position, &at); err != nil {
			return nil, err
		}
	}
	return &fakeTable{p.rows, at}, nil
}

var errTorn = fault.New(fault.Invalid, "torn", "the row is torn")

func (p *fakeTable) Next() (int64, []string, error) {
	if p.at == len(p.rows) {
		return 0, nil, io.EOF
	}
	p.at++
	if row := p.rows[p.at-1]; row != nil {
		return int64(p.at), row, nil
	}
	return int64(p.at), nil, errTorn
}

func (p *fakeTable) Broken(err error) bool     { return !errors.Is(err, errTorn) }
func (p *fakeTable) Position() json.RawMessage { return json.RawMessage(fmt.Sprint(p.at)) }
func (p *fakeTable) Close() error              { return nil }

// work runs a job to its end, one step after the other. Each step begins at the
// cursor of the step before.
func work(t interface{ Fatal(...any) }, im *user.Importer, kind string, p user.ImportParams) (last job.Progress, broken []job.RowError) {
	params, _ := json.Marshal(p)
	j := job.Job{Kind: kind, Params: params, UploadID: 1, Actor: staff.Actor{Label: "staff:1", Role: staff.Marketer}}
	for steps := 0; !last.Finished; steps++ {
		p, err := im.Step(context.Background(), j)
		if err != nil && steps < 50 {
			continue // is tried again
		}
		if err != nil {
			t.Fatal(err)
		}
		j.Cursor, last, broken = p.Cursor, p, append(broken, p.Errors...)
	}
	return last, broken
}

func slow() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time { now = now.Add(time.Second); return now }
}

func result(t interface{ Fatal(...any) }, p job.Progress) (r user.ImportResult) {
	if err := json.Unmarshal(p.Result, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A check changes nothing and reports the results of the later import. Importing
// again changes nothing. Broken rows are named; all other rows are imported.
func TestImport(t *testing.T) {
	table := &fakeTable{rows: [][]string{{"id", "name", "e-mail", "phone", "tier", "opt-outs", "locale", "quiet hours"}}}
	for i := range 4000 {
		table.rows = append(table.rows, []string{fmt.Sprint(i + 1), fmt.Sprint("n", i), "u@example.com", "0086 138-0013 8000", "7", "email sms", "zh_CN", "22:00 – 08:00"})
	}
	table.rows = append(table.rows, []string{"x", "nobody"}, []string{"5000", "", "nonsense", "12"}, nil, []string{"5001", "", "", "", "007", "fax"},
		[]string{"5002", "last", "", "", "gold", "-"}, []string{"5002", "really last", "", "", "", "", "", "26:00"},
		[]string{"5003", "", "", "", "", "", "", "22:00-22:00"})
	store := &fakeStore{stored: map[user.ID]user.Change{}, fail: 2}
	im := &user.Importer{Store: store, Tables: table, Now: slow()}
	p := user.ImportParams{Columns: user.GuessMapping(table.rows[0])}
	check, broken := work(t, im, user.CheckJob, p)
	want := user.ImportResult{New: 4001, Invalid: 6}
	if r := result(t, check); r != want || len(store.stored) != 0 || check.Done != 4001 || check.Failed != 6 {
		t.Fatalf("the check says %+v, %+v; stored %d", r, check, len(store.stored))
	}
	lines := ""
	for _, e := range broken {
		lines += fmt.Sprintf("%d %s\n", e.Line, e.Error)
	}
	if lines != "4002 id: must be a positive decimal number\n"+
		"4003 email: must be an e-mail address such as ann@example.com; phone: must be an E.164 number such as +8613800138000\n"+
		"4004 the row is torn\n"+
		"4005 opt_outs: must be channels such as email or sms, separated by spaces\n"+
		"4007 quiet_hours: must be two times of day such as 22:00-08:00\n"+
		"4008 quiet_hours: must begin and end at different times; - removes the quiet hours\n" {
		t.Errorf("complaints:\n%s", lines)
	}
	done, _ := work(t, im, user.ImportJob, p)
	if r := result(t, done); r != want || len(store.stored) != 4001 {
		t.Fatalf("the import says %+v, stored %d", r, len(store.stored))
	}
	one := store.stored[7]
	if *one.Phone != "+8613800138000" || *one.OptOuts != 6 || *one.Locale != "zh-CN" || one.Quiet.From != 22*60 || one.Patch["tier"] != 7.0 || one.Attributes != nil {
		t.Errorf("stored %+v", one)
	}
	if e := store.entries[0]; e.Action != "user.import" || e.Actor.Label != "staff:1" {
		t.Errorf("recorded %+v", e)
	}
	before := len(store.entries)
	again, _ := work(t, im, user.ImportJob, p)
	if r := result(t, again); r.Unchanged != 4001 || r.New+r.Changed != 0 || len(store.entries) != before {
		t.Errorf("again: %+v, %d writes", r, len(store.entries)-before)
	}
}

// A check reports what the import will do with ids that occur twice in a table,
// near each other or far apart, and names these ids.
func TestImportOfRepeatedIDs(t *testing.T) {
	head := []string{"id", "name", "note"}
	ann, two, dup := []string{"80001", "Ann"}, []string{"80002", "Bea"}, []string{"80001", "Dup"}
	var crowd [][]string
	for i := range 3000 {
		crowd = append(crowd, []string{fmt.Sprint(i + 1), "n"})
	}
	for name, c := range map[string]struct {
		rows  [][]string
		want  user.ImportResult
		notes string
	}{
		"near":      {[][]string{ann, two, dup}, user.ImportResult{New: 2, Changed: 1, Repeated: 1}, "4 the id of line 2 appears again on line 4; the last one counts\n"},
		"the same":  {[][]string{ann, two, ann}, user.ImportResult{New: 2, Unchanged: 1, Repeated: 1}, "4 the id of line 2 appears again on line 4; the last one counts\n"},
		"far apart": {slices.Concat([][]string{ann}, crowd, [][]string{dup}), user.ImportResult{New: 3001, Changed: 1, Repeated: 1}, "3003 the id of line 2 appears again on line 3003; the last one counts\n"},
		"both": {slices.Concat([][]string{ann}, crowd, [][]string{dup, dup, ann}), user.ImportResult{New: 3001, Changed: 2, Unchanged: 1, Repeated: 3},
			"3003 the id of line 2 appears again on line 3003; the last one counts\n3004 the id of line 3003 appears again on line 3004; the last one counts\n" +
				"3005 the id of line 3004 appears again on line 3005; the last one counts\n"},
		"a column that is not read": {[][]string{ann, {"80001", "Ann", "other"}}, user.ImportResult{New: 1, Unchanged: 1, Repeated: 1}, "3 the id of line 2 appears again on line 3; the last one counts\n"},
	} {
		t.Run(name, func(t *testing.T) {
			store := &fakeStore{stored: map[user.ID]user.Change{}}
			im := &user.Importer{Store: store, Tables: &fakeTable{rows: slices.Concat([][]string{head}, c.rows)}, Now: slow()}
			p := user.ImportParams{Columns: user.Mapping{user.ToID, user.ToName, user.Ignored}}
			check, notes := work(t, im, user.CheckJob, p)
			if r := result(t, check); r != c.want || check.Failed != 0 || len(store.stored) != 0 || len(store.seen) != 0 {
				t.Errorf("the check says %+v, %d failed, %d rows are kept", r, check.Failed, len(store.seen))
			}
			lines := ""
			for _, e := range notes {
				lines += fmt.Sprintf("%d %s\n", e.Line, e.Error)
			}
			if lines != c.notes {
				t.Errorf("notes:\n%s", lines)
			}
			done, complaints := work(t, im, user.ImportJob, p)
			r := result(t, done)
			if r.Repeated = c.want.Repeated; r != c.want || len(complaints) != 0 {
				t.Errorf("the import says %+v, %v", r, complaints)
			}
			if last := c.rows[len(c.rows)-1]; *store.stored[80001].Name != last[1] {
				t.Errorf("stored %q, want %q", *store.stored[80001].Name, last[1])
			}
		})
	}
}

// A row that has more cells than the heading was divided in a wrong place. Nothing
// of the row is stored under the names of other columns.
func TestImportOfRowsBeyondTheHeading(t *testing.T) {
	table := &fakeTable{rows: [][]string{{"id", "name", "email"}, {"1", "Lee", " Ann", "a@example.com"}, {"2", "Bea", "b@example.com", "", " "}, {"3", "Cid", "", "", "x"}, {"4", "Dan"}}}
	for name, m := range map[string]user.Mapping{
		"all columns":     {user.ToID, user.ToName, user.ToEmail},
		"one is left out": {user.ToID, user.ToName, user.Ignored},
		"an attribute":    {user.ToID, user.ToName, user.ToAttribute("mail")},
	} {
		for _, kind := range []string{user.CheckJob, user.ImportJob} {
			store := &fakeStore{stored: map[user.ID]user.Change{}}
			last, broken := work(t, &user.Importer{Store: store, Tables: table, Now: slow()}, kind, user.ImportParams{Columns: m})
			lines := ""
			for _, e := range broken {
				lines += fmt.Sprintf("%d %s %s\n", e.Line, e.Because[0].Key, e.Error)
			}
			if r := result(t, last); r != (user.ImportResult{New: 2, Invalid: 2}) || lines != "2 rule.row_cells the row has 4 cells and the heading only 3; put quotes around text with commas\n"+
				"4 rule.row_cells the row has 5 cells and the heading only 3; put quotes around text with commas\n" {
				t.Errorf("%s, %s: %+v\n%s", name, kind, r, lines)
			}
		}
	}
}

// Empty cells leave the stored value, unless the import clears values by empty cells.
func TestImportEmptyCells(t *testing.T) {
	table := &fakeTable{rows: [][]string{{"id", "name", "tier"}, {"1", "", ""}, {"2"}}}
	for clear, want := range map[bool]string{false: "<nil> map[]", true: "0 map[tier:<nil>]"} {
		store := &fakeStore{stored: map[user.ID]user.Change{}}
		work(t, &user.Importer{Store: store, Tables: table, Now: slow()}, user.ImportJob, user.ImportParams{Columns: user.GuessMapping(table.rows[0]), Clear: clear})
		for id, c := range store.stored {
			name := "<nil>"
			if c.Name != nil {
				name = fmt.Sprint(len(*c.Name))
			}
			if got := fmt.Sprint(name, " ", c.Patch); got != want {
				t.Errorf("clear %v, user %d: %s, want %s", clear, id, got, want)
			}
		}
	}
}

func TestImportAttributesAreTyped(t *testing.T) {
	for cell, want := range map[string]any{"7": 7.0, "-0.5": -0.5, "007": "007", "1234567890123456": "1234567890123456", "true": true, "FALSE": false, "gold": "gold", "1e5": "1e5", "7 ": 7.0, "NaN": "NaN"} {
		store := &fakeStore{stored: map[user.ID]user.Change{}}
		table := &fakeTable{rows: [][]string{{"id", "a"}, {"1", cell}}}
		work(t, &user.Importer{Store: store, Tables: table, Now: slow()}, user.ImportJob, user.ImportParams{Columns: user.GuessMapping(table.rows[0])})
		if got := store.stored[1].Patch["a"]; got != want {
			t.Errorf("%q: %#v, want %#v", cell, got, want)
		}
	}
}

func TestImportNeedsPermission(t *testing.T) {
	im := &user.Importer{Store: &fakeStore{}, Tables: &fakeTable{}, Now: slow()}
	if _, err := im.Step(t.Context(), job.Job{Actor: staff.Actor{Role: staff.Viewer}}); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("a viewer: %v", err)
	}
	by := staff.Actor{Role: staff.Marketer}
	for _, params := range []string{`{}`, `{"columns":["name"]}`, `[`} {
		if _, err := im.Step(t.Context(), job.Job{Actor: by, Params: []byte(params)}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// Wherever steps fail, every row is counted once and stored.
func TestImportSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := &fakeTable{rows: [][]string{{"id"}}}
		for i := range rapid.IntRange(0, 9000).Draw(t, "rows") {
			table.rows = append(table.rows, []string{fmt.Sprint(i + 1)})
		}
		torn := rapid.SliceOfN(rapid.IntRange(1, max(1, len(table.rows)-1)), 0, 5).Draw(t, "torn")
		for _, at := range torn {
			if at < len(table.rows) {
				table.rows[at] = nil
			}
		}
		lost := int64(0)
		for _, r := range table.rows {
			if r == nil {
				lost++
			}
		}
		store := &fakeStore{stored: map[user.ID]user.Change{}, fail: rapid.IntRange(0, 6).Draw(t, "fail")}
		last, broken := work(t, &user.Importer{Store: store, Tables: table, Now: slow()}, user.ImportJob, user.ImportParams{Columns: user.Mapping{user.ToID}})
		rows := int64(len(table.rows)) - 1
		if last.Done != rows-lost || last.Failed != lost || int64(len(store.stored)) != rows-lost || int64(len(broken)) != lost {
			t.Fatalf("%d rows, %d torn: %+v, %d stored, %d reported", rows, lost, last, len(store.stored), len(broken))
		}
		if !slices.IsSortedFunc(broken, func(a, b job.RowError) int { return int(a.Line - b.Line) }) {
			t.Fatal("rows are reported out of order")
		}
	})
}
