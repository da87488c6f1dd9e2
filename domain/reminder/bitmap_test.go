package reminder_test

import (
	"encoding/json"
	"errors"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/musttest"
)

// vectors are the expected values that all implementations of bitmaps share.
type vectors struct {
	Encode []struct {
		Minutes, Channel, Bit int
		Value                 string
	}
	RefusedMinutes  []int                           `json:"refused_minutes"`
	RefusedChannels []int                           `json:"refused_channels"`
	Merge           []struct{ A, B, Merged string } `json:"merge"`
	ContainsAll     []struct {
		Set, Asked string
		HasAll     bool `json:"has_all"`
	} `json:"contains_all"`
	Remove []struct{ Set, Removed, Left string }
	Decode []struct {
		Slots     string
		Reminders []struct{ Minutes, Channel int }
	}
}

func load(t *testing.T) vectors {
	t.Helper()
	raw, err := os.ReadFile("testdata/bitmap.json")
	musttest.OK(t, err)
	var v vectors
	musttest.OK(t, json.Unmarshal(raw, &v))
	if len(v.Encode) != 60 || len(v.RefusedMinutes) == 0 || len(v.RefusedChannels) == 0 || len(v.Merge) == 0 ||
		len(v.ContainsAll) == 0 || len(v.Remove) == 0 || len(v.Decode) == 0 {
		t.Fatalf("the vectors are incomplete: %+v", v)
	}
	return v
}

// parse reads a stored bitmap; null is a row that does not exist.
func parse(t *testing.T, s string) reminder.Bitmap {
	t.Helper()
	if s == "null" {
		return reminder.Bitmap{}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	musttest.OK(t, err)
	b, err := reminder.BitmapFrom(n)
	musttest.OK(t, err)
	return b
}

func TestVectorsOfEncoding(t *testing.T) {
	v := load(t)
	var all reminder.Bitmap
	for _, e := range v.Encode {
		r, err := reminder.NewReminder(delivery.Channel(e.Channel), e.Minutes)
		musttest.OK(t, err)
		b := reminder.BitmapOf(r)
		if b.String() != e.Value || b.Int64() != 1<<e.Bit || b.Len() != 1 {
			t.Errorf("channel %d, %d minutes: %s, want %s", e.Channel, e.Minutes, b, e.Value)
		}
		all = all.Union(b)
	}
	if all.Int64() != 1<<60-1 || all.Len() != 60 {
		t.Errorf("all sixty are %s", all)
	}
	for _, m := range v.RefusedMinutes {
		if _, err := reminder.NewReminder(delivery.App, m); !errors.Is(err, reminder.ErrNoSuchReminder) {
			t.Errorf("%d minutes: %v", m, err)
		}
	}
	for _, c := range v.RefusedChannels {
		if _, err := reminder.NewReminder(delivery.Channel(c), 5); !errors.Is(err, delivery.ErrChannelUnavailable) {
			t.Errorf("channel %d: %v", c, err)
		}
	}
}

func TestVectorsOfSets(t *testing.T) {
	v := load(t)
	for _, m := range v.Merge {
		a, b := parse(t, m.A), parse(t, m.B)
		if a.Union(b).String() != m.Merged || b.Union(a).String() != m.Merged {
			t.Errorf("%s and %s: %s, want %s", m.A, m.B, a.Union(b), m.Merged)
		}
	}
	for _, c := range v.ContainsAll {
		if got := parse(t, c.Set).Contains(parse(t, c.Asked)); got != c.HasAll {
			t.Errorf("%s has all of %s: %v", c.Set, c.Asked, got)
		}
	}
	for _, r := range v.Remove {
		if got := parse(t, r.Set).Without(parse(t, r.Removed)); got.String() != r.Left || got.IsEmpty() != (r.Left == "0") {
			t.Errorf("%s without %s: %s, want %s", r.Set, r.Removed, got, r.Left)
		}
	}
}

func TestVectorsOfDecoding(t *testing.T) {
	for _, d := range load(t).Decode {
		var want []reminder.Reminder
		for _, r := range d.Reminders {
			want = append(want, reminder.Reminder{Channel: delivery.Channel(r.Channel), Slot: template.Slot(r.Minutes / 5)})
		}
		if got := parse(t, d.Slots).Reminders(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", d.Slots, got, want)
		}
	}
}

func anyBitmap() *rapid.Generator[reminder.Bitmap] {
	return rapid.Map(rapid.Int64Range(0, 1<<60-1), reminder.StoredBitmap)
}

func TestAnyBitmapSurvivesItsReminders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyBitmap().Draw(t, "b")
		list := b.Reminders()
		if reminder.BitmapOf(list...) != b || len(list) != b.Len() || b.IsEmpty() != (len(list) == 0) {
			t.Fatalf("%s became %v", b, list)
		}
		farthestFirst := func(x, y reminder.Reminder) int {
			if x.Slot != y.Slot {
				return int(y.Slot - x.Slot)
			}
			return int(x.Channel) - int(y.Channel)
		}
		if !slices.IsSortedFunc(list, farthestFirst) {
			t.Fatalf("%s is listed as %v", b, list)
		}
		if stored, err := reminder.BitmapFrom(b.Int64()); err != nil || stored != b {
			t.Fatalf("%s is read back as %s (%v)", b, stored, err)
		}
	})
}

func TestSetAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyBitmap().Draw(t, "a"), anyBitmap().Draw(t, "b")
		both, either := a.Intersect(b), a.Union(b)
		for name, ok := range map[string]bool{
			"either is made of three parts":     a.Without(b).Union(b.Without(a)).Union(both) == either,
			"what is left shares nothing":       a.Without(b).Intersect(b).IsEmpty(),
			"adding and removing goes back":     either.Without(b) == a.Without(b),
			"nobody is counted twice":           a.Len()+b.Len() == either.Len()+both.Len(),
			"contains is being left unchanged":  a.Contains(b) == (a.Union(b) == a),
			"contains is leaving nothing over":  a.Contains(b) == b.Without(a).IsEmpty(),
			"everything contains the empty set": a.Contains(reminder.Bitmap{}),
			"either contains both":              either.Contains(a) && either.Contains(b),
		} {
			if !ok {
				t.Fatalf("not true that %s: a %s, b %s", name, a, b)
			}
		}
		for _, r := range either.Reminders() {
			if a.Has(r) != slices.Contains(a.Reminders(), r) {
				t.Fatalf("%s has %v: %v", a, r, a.Has(r))
			}
		}
	})
}

func TestOnlySixtyBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		b, err := reminder.BitmapFrom(n)
		if fits := n >= 0 && n < 1<<60; (err == nil) != fits {
			t.Fatalf("%d: %v", n, err)
		}
		if err == nil && b.Len() != bits.OnesCount64(uint64(n)) {
			t.Fatalf("%d: %d reminders", n, b.Len())
		}
		if kept := reminder.StoredBitmap(n); kept.Int64() != n&(1<<60-1) || kept.Int64() < 0 {
			t.Fatalf("%d is kept as %s", n, kept)
		}
	})
}

func TestSlotMask(t *testing.T) {
	var union reminder.Bitmap
	for _, s := range template.AllSlots() {
		mask := reminder.SlotMask(s)
		if mask.Len() != delivery.Channels || !mask.Intersect(union).IsEmpty() {
			t.Errorf("slot %d: %s", s, mask)
		}
		for _, r := range mask.Reminders() {
			if r.Slot != s {
				t.Errorf("slot %d: %v", s, r)
			}
		}
		union = union.Union(mask)
	}
	if union.Len() != 60 {
		t.Errorf("all slots are %s", union)
	}
}

func TestDueAt(t *testing.T) {
	opens := time.Date(2026, 11, 20, 0, 3, 7, 0, time.UTC)
	r, _ := reminder.NewReminder(delivery.SMS, 5)
	if want := time.Date(2026, 11, 19, 23, 58, 7, 0, time.UTC); !r.DueAt(opens).Equal(want) {
		t.Errorf("due %v, want %v", r.DueAt(opens), want)
	}
}
