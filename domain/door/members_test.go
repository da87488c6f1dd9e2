package door_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/door"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

type set map[user.ID]bool

func (s set) Contains(id user.ID) bool { return s[id] }

// fakeStore answers from maps and counts what is read.
type fakeStore struct {
	mu     sync.Mutex
	frozen map[int]set
	judged map[user.ID]int
	reads  int
	fails  error
}

func (s *fakeStore) Judge(_ context.Context, _ int64, by user.ID) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.judged[by], s.fails
}

func (s *fakeStore) Frozen(_ context.Context, _ int64, place int) (door.Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frozen[place], s.fails
}

func (s *fakeStore) read() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.reads
	s.reads = 0
	return n
}

func drop(frozen bool) *template.Template {
	now := time.Now()
	t := &template.Template{ID: 1, Spec: template.Spec{OpensAt: now.Add(time.Hour), Stock: 10, PerUserLimit: 1}, Doors: []template.Door{
		{Name: "Members", Who: template.ToSegment, SegmentID: 3, LeadMinutes: 60}, {Name: "Everybody", Who: template.ToAll}}}
	if frozen {
		t.Doors[0].FrozenAt, t.Doors[1].FrozenAt = &now, &now
	}
	return t
}

// Of frozen members nothing is read, once their bitmaps are in memory; users who may have been added later are
// judged once.
func TestFrozenMembersAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{frozen: map[int]set{1: {7: true}}, judged: map[user.ID]int{7: 1, 8: 2, 9: 1}}
		m := &door.Members{Store: s, Now: time.Now}
		d := drop(true)
		expect := func(by user.ID, place, reads int) {
			t.Helper()
			got, err := m.Door(t.Context(), d, by)
			if err != nil || got != place {
				t.Errorf("user %d comes through %d, %v; want %d", by, got, err, place)
			}
			if n := s.read(); n != reads {
				t.Errorf("user %d cost %d reads, want %d", by, n, reads)
			}
		}
		expect(7, 1, 1) // while the bitmap is read
		synctest.Wait()
		expect(7, 1, 0)
		expect(8, 2, 1)
		expect(8, 2, 0)
		expect(9, 1, 1) // added later
		expect(9, 1, 0)
		time.Sleep(time.Hour) // of the bubble's clock: the door for all is open, and memberships no longer matter
		expect(10, 2, 0)
		later := d.Doors[0].FrozenAt.Add(time.Minute) // frozen anew, as after a restored backup
		d.Doors = slices.Clone(d.Doors)
		d.Doors[0].FrozenAt = &later
		s.frozen[1], s.judged[11] = set{11: true}, 1
		expect(11, 1, 1)
		synctest.Wait()
		expect(11, 1, 0)
	})
}

// Before the freeze the answer of a user is remembered for some seconds, and changes with the rules.
func TestJudgedUntilFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{judged: map[user.ID]int{7: 1}}
		m := &door.Members{Store: s, Now: time.Now}
		d := drop(false)
		for range 3 {
			if got, err := m.Door(t.Context(), d, 7); got != 1 || err != nil {
				t.Fatalf("door %d, %v", got, err)
			}
		}
		if n := s.read(); n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
		s.judged[7] = 0
		time.Sleep(6 * time.Second) // of the bubble's clock, longer than judgedFor
		if _, err := m.Door(t.Context(), d, 7); !errors.Is(err, claim.ErrNotEligible) {
			t.Errorf("no member any more: %v", err)
		}
	})
}

// A store that fails fails the claim, and is asked again.
func TestMembersThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{frozen: map[int]set{1: {7: true}}, judged: map[user.ID]int{7: 1}, fails: context.DeadlineExceeded}
		m := &door.Members{Store: s, Now: time.Now}
		d := drop(true)
		if _, err := m.Door(t.Context(), d, 7); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the store fails: %v", err)
		}
		synctest.Wait()
		s.fails = nil
		s.read()
		time.Sleep(2 * time.Second)        // of the bubble's clock, longer than loadAgain
		for i, want := range []int{1, 0} { // the answer was not remembered
			if got, err := m.Door(t.Context(), d, 7); got != 1 || err != nil {
				t.Fatalf("door %d, %v", got, err)
			}
			synctest.Wait()
			if n := s.read(); n != want {
				t.Errorf("call %d: %d reads, want %d", i, n, want)
			}
		}
	})
}

// The drops that are asked for least are forgotten.
func TestFewDropsAreRemembered(t *testing.T) {
	s := &fakeStore{judged: map[user.ID]int{7: 1}}
	m := &door.Members{Store: s, Now: time.Now}
	for id := range int64(200) {
		d := drop(false)
		d.ID = id + 1
		if got, err := m.Door(t.Context(), d, 7); got != 1 || err != nil {
			t.Fatalf("door %d, %v", got, err)
		}
	}
	s.read()
	d := drop(false)
	d.ID = 200
	if _, err := m.Door(t.Context(), d, 7); err != nil || s.read() != 0 {
		t.Errorf("the latest drop was forgotten: %v", err)
	}
	d.ID = 1
	if _, err := m.Door(t.Context(), d, 7); err != nil || s.read() != 1 {
		t.Errorf("the first drop of 200 is remembered: %v", err)
	}
}

// A user without an access code is told to enter it, and comes through its door at once when it is entered in this
// process, or a few seconds later in another.
func TestMembersWithAccessCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{frozen: map[int]set{1: {}}, judged: map[user.ID]int{}}
		m := &door.Members{Store: s, Now: time.Now}
		d := drop(true)
		d.Doors = []template.Door{{Name: "Invited", Who: template.ToCodes, FrozenAt: d.Doors[0].FrozenAt}}
		for _, by := range []user.ID{7, 8} {
			if _, err := m.Door(t.Context(), d, by); !errors.Is(err, claim.ErrCodeNeeded) {
				t.Errorf("without a code: %v", err)
			}
		}
		synctest.Wait()
		s.judged[7], s.judged[8] = 1, 1
		m.Forget(d.ID, 7)
		m.Forget(99, 7)
		if got, err := m.Door(t.Context(), d, 7); got != 1 || err != nil {
			t.Errorf("with a code: %d, %v", got, err)
		}
		time.Sleep(6 * time.Second) // of the bubble's clock, longer than judgedFor
		if got, err := m.Door(t.Context(), d, 8); got != 1 || err != nil {
			t.Errorf("with a code entered elsewhere: %d, %v", got, err)
		}
	})
}
