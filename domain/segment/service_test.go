package segment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// fakeStore is a store with one segment; every save is kept.
type fakeStore struct {
	segment.Store
	one     segment.Segment
	uses    []segment.Use
	entries []staff.Entry
	members map[user.ID]bool
	counted int64
	fail    int // calls of AddMembers until one fails
	shops   map[int64]int64
	erased  map[user.ID]bool
}

func (s *fakeStore) TemplateShops(context.Context, []int64) (map[int64]int64, error) {
	return s.shops, nil
}

func (s *fakeStore) Segment(_ context.Context, id int64) (segment.Segment, error) {
	if id != s.one.ID {
		return segment.Segment{}, segment.ErrNotFound
	}
	return s.one, nil
}

func (s *fakeStore) CreateSegment(_ context.Context, g segment.Segment, _ string, e staff.Entry) (segment.Segment, error) {
	g.ID, g.Version, s.entries = 1, 1, append(s.entries, e)
	s.one = g
	return g, nil
}

func (s *fakeStore) Uses(context.Context, int64) ([]segment.Use, error) { return s.uses, nil }

func (s *fakeStore) FillList(_ context.Context, _ int64, j job.Job, _ string, e staff.Entry) (job.Job, error) {
	s.entries = append(s.entries, e)
	return j, nil
}

func (s *fakeStore) SaveSegment(_ context.Context, g segment.Segment, e staff.Entry) (segment.Segment, error) {
	s.one, s.entries = g, append(s.entries, e)
	return g, nil
}

func (s *fakeStore) EstimateRule(context.Context, segment.Rule) (segment.Estimate, error) {
	return segment.Estimate{Members: 7}, nil
}

func (s *fakeStore) CountRange(_ context.Context, _ segment.Rule, after user.ID, limit int) (int64, int64, user.ID, error) {
	left := min(int64(limit), 45_000-int64(after))
	if left <= 0 {
		return 0, 0, 0, nil
	}
	return left / 2, left, after + user.ID(left), nil
}

func (s *fakeStore) StoreCount(_ context.Context, _, _, members int64) error {
	s.counted = members
	return nil
}

func (s *fakeStore) Erased(context.Context, []user.ID) (map[user.ID]bool, error) {
	return s.erased, nil
}

func (s *fakeStore) AddMembers(_ context.Context, _ int64, ids []user.ID) (int64, error) {
	if !slices.IsSorted(ids) {
		return 0, errors.New("ids are not in order")
	}
	if s.fail--; s.fail == 0 {
		return 0, errors.New("away")
	}
	for _, id := range ids {
		s.members[id] = true
	}
	return int64(len(ids)), nil
}

// fakeJobs records the jobs that are begun.
type fakeJobs struct{ list []job.New }

func (s *fakeJobs) Start(_ context.Context, _ staff.Actor, n job.New, _ staff.Permission) (job.Job, error) {
	s.list = append(s.list, n)
	return job.Job{ID: int64(len(s.list)), Kind: n.Kind, Params: n.Params, UploadID: n.UploadID}, nil
}

var (
	marketer = staff.Actor{Label: "staff:2", Role: staff.Marketer}
	viewer   = staff.Actor{Label: "staff:3", Role: staff.Viewer}
	gold     = segment.Spec{Name: " Gold ", Rule: segment.Leaf(segment.Attribute, "tier", segment.Is, "gold")}
)

func TestService(t *testing.T) {
	store, jobs := &fakeStore{}, &fakeJobs{}
	s := &segment.Service{Store: store, Jobs: jobs, Tables: tableOf([]string{"id"}, []string{"7"})}
	g, err := s.Create(t.Context(), marketer, gold, "")
	if err != nil || g.Name != "Gold" || store.entries[0].Action != "segment.create" {
		t.Fatalf("%+v %v", g, err)
	}
	if _, err := s.Save(t.Context(), marketer, g.ID, 1, segment.Spec{Name: "", Rule: segment.Leaf("shoe", "", "fits")}); !errors.Is(err, fault.ErrInvalid) {
		t.Fatalf("nonsense is saved: %v", err)
	}
	if _, err := s.Create(t.Context(), marketer, segment.Spec{Name: "Go\u202eld", Rule: gold.Rule}, ""); !errors.Is(err, fault.ErrInvalid) {
		t.Fatalf("a name that turns the page around: %v", err)
	}
	if _, err := s.Count(t.Context(), marketer, g.ID, ""); err != nil || jobs.list[0].Kind != segment.CountJob {
		t.Fatalf("%+v %v", jobs.list, err)
	}
	if _, err := s.AddFile(t.Context(), marketer, g.ID, 5, ""); !errors.Is(err, segment.ErrIsRules) {
		t.Fatalf("a file for rules: %v", err)
	}
	list, j, err := s.CreateList(t.Context(), marketer, "List", 5, "")
	if err != nil || list.Kind != segment.ByList || j.Kind != segment.ListJob || j.UploadID != 5 {
		t.Fatalf("%+v %+v %v", list, j, err)
	}
	store.uses = []segment.Use{{Name: "Spring", State: "draft"}}
	if _, err := s.AddFile(t.Context(), marketer, list.ID, 6, ""); err != nil || store.entries[len(store.entries)-1].Action != "job.start" {
		t.Fatalf("a second file: %v", err)
	}
	store.uses = append(store.uses, segment.Use{Name: "Autumn", State: "scheduled", Keeps: true})
	if _, err := s.AddFile(t.Context(), marketer, list.ID, 7, ""); !errors.Is(err, segment.ErrListInUse) || !strings.Contains(err.Error(), "Autumn") {
		t.Fatalf("a file for a list that is kept: %v", err)
	}
	if _, err := s.Save(t.Context(), marketer, list.ID, 1, gold); !errors.Is(err, segment.ErrIsList) {
		t.Fatalf("rules for a list: %v", err)
	}
	if after, err := s.Save(t.Context(), marketer, list.ID, 1, segment.Spec{Name: "Other", Rule: segment.Everybody()}); err != nil || after.Name != "Other" {
		t.Fatalf("another name: %v", err)
	}
	if _, err := s.Count(t.Context(), marketer, list.ID, ""); !errors.Is(err, segment.ErrIsList) {
		t.Fatalf("counting a list: %v", err)
	}
	for what, err := range map[string]error{
		"create": of(s.Create(t.Context(), viewer, gold, "")), "save": of(s.Save(t.Context(), viewer, 1, 1, gold)), "delete": s.Delete(t.Context(), viewer, 1),
		"clone": of(s.Clone(t.Context(), viewer, 1, "x")), "count": of(s.Count(t.Context(), viewer, 1, "")), "add": of(s.AddFile(t.Context(), viewer, 1, 1, "")),
	} {
		if !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("a viewer may %s: %v", what, err)
		}
	}
	if e, err := s.Estimate(t.Context(), viewer, gold.Rule); err != nil || e.Members != 7 {
		t.Errorf("a viewer's estimate: %v", err)
	}
	if _, err := s.Estimate(t.Context(), viewer, segment.Leaf("shoe", "", "fits")); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("an estimate of nonsense: %v", err)
	}
}

func of[T any](_ T, err error) error { return err }

// A count goes on from its cursor, and stops when the rule has changed.
func TestCounter(t *testing.T) {
	store := &fakeStore{one: segment.Segment{ID: 1, Kind: segment.ByRules, Version: 3}}
	now := time.Unix(0, 0)
	c := &segment.Counter{Store: store, Now: func() time.Time { now = now.Add(time.Second); return now }}
	j := job.Job{Params: []byte(`{"segment_id":"1","version":"3"}`)}
	steps := 0
	for finished := false; !finished; steps++ {
		p, err := c.Step(t.Context(), j)
		if err != nil || steps > 10 {
			t.Fatalf("%+v %v", p, err)
		}
		j.Cursor, finished = p.Cursor, p.Finished
	}
	if store.counted != 22_500 || steps < 2 {
		t.Fatalf("counted %d in %d steps", store.counted, steps)
	}
	store.one.Version = 4
	if _, err := c.Step(t.Context(), j); !errors.Is(err, fault.ErrStale) {
		t.Fatalf("a count of a rule that has changed: %v", err)
	}
}

// file is a table in memory, whose position is the next row.
type file struct {
	rows [][]string
	at   int
}

func (f *file) OpenTable(_ context.Context, _ int64, _ job.Reading, position json.RawMessage) (job.Rows, error) {
	at := 0
	if len(position) > 0 {
		if err := json.Unmarshal(position, &at); err != nil {
			return nil, err
		}
	}
	return &file{f.rows, at}, nil
}

var errRow = fault.New(fault.Invalid, "bad_row", "the row is broken")

func (f *file) Next() (int64, []string, error) {
	if f.at == len(f.rows) {
		return 0, nil, io.EOF
	}
	f.at++
	if f.rows[f.at-1] == nil {
		return int64(f.at), nil, errRow
	}
	return int64(f.at), f.rows[f.at-1], nil
}

func (f *file) Broken(err error) bool     { return !errors.Is(err, errRow) }
func (f *file) Position() json.RawMessage { return json.RawMessage(fmt.Sprint(f.at)) }
func (f *file) Close() error              { return nil }

// A list is filled in steps that may fail and be repeated; each row without an id
// is reported once.
func TestFiller(t *testing.T) {
	f := &file{rows: [][]string{{"name", "User ID"}}}
	for i := range 50_000 {
		f.rows = append(f.rows, []string{"x", fmt.Sprint(50_000 - i)})
	}
	f.rows = append(f.rows, []string{"x", "ann"}, []string{"x"}, nil, []string{"x", "7"})
	store := &fakeStore{one: segment.Segment{ID: 1, Kind: segment.ByList}, members: map[user.ID]bool{}, fail: 2}
	now := time.Unix(0, 0)
	filler := &segment.Filler{Store: store, Tables: f, Now: func() time.Time { now = now.Add(time.Second); return now }}
	j := job.Job{Params: []byte(`{"segment_id":"1","version":"1"}`), UploadID: 3}
	var broken []job.RowError
	var last job.Progress
	for steps := 0; !last.Finished; steps++ {
		p, err := filler.Step(t.Context(), j)
		if err != nil && steps < 20 {
			continue // tried again from the same cursor
		}
		if err != nil || steps > 20 {
			t.Fatal(err)
		}
		j.Cursor, last, broken = p.Cursor, p, append(broken, p.Errors...)
	}
	if len(store.members) != 50_000 || last.Done != 50_001 || last.Failed != 3 || len(broken) != 3 || broken[0].Line != 50_002 || broken[0].Row != "ann" {
		t.Fatalf("%d members, %+v, %+v", len(store.members), last, broken)
	}
}

// A file without any meaning does not look like a list that is filled.
func TestFillerOfJunk(t *testing.T) {
	for name, c := range map[string]struct {
		rows [][]string
		want error
	}{"junk": {[][]string{{"not a zip"}}, job.ErrUnreadable}, "names alone": {[][]string{{"id"}}, nil}, "nothing": {nil, nil}} {
		store := &fakeStore{one: segment.Segment{ID: 1, Kind: segment.ByList}, members: map[user.ID]bool{}}
		now := time.Unix(0, 0)
		filler := &segment.Filler{Store: store, Tables: &file{rows: c.rows}, Now: func() time.Time { return now }}
		if p, err := filler.Step(t.Context(), job.Job{Params: []byte(`{"segment_id":"1","version":"1"}`)}); !errors.Is(err, c.want) || p.Finished != (c.want == nil) {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
}

// Without a row of names the first column counts.
func TestFillerWithoutHeader(t *testing.T) {
	for name, c := range map[string]struct {
		rows [][]string
		want int
	}{"ids alone": {[][]string{{"5"}, {"6"}}, 2}, "another language": {[][]string{{"名", "用户ID"}, {"x", "5"}}, 1}, "unknown names": {[][]string{{"kunde"}, {"5"}}, 1}} {
		store := &fakeStore{one: segment.Segment{ID: 1, Kind: segment.ByList}, members: map[user.ID]bool{}}
		filler := &segment.Filler{Store: store, Tables: &file{rows: c.rows}, Now: func() time.Time { return time.Unix(0, 0) }}
		p, err := filler.Step(t.Context(), job.Job{Params: []byte(`{"segment_id":"1","version":"1"}`)})
		if err != nil || !p.Finished || len(store.members) != c.want || p.Failed != 0 {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
}
