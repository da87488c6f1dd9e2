package campaign

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

type buckets struct {
	Ranges []struct {
		MaxUserID user.ID `json:"max_user_id"`
		Size      int
		Ranges    [][2]user.ID
	}
	Messages []struct {
		Bytes      string
		MaxRanges  int `json:"max_ranges"`
		LimitBytes int `json:"limit_bytes"`
		Counts     []int
	}
}

func vectors(t *testing.T) buckets {
	t.Helper()
	raw, err := os.ReadFile("testdata/buckets.json")
	musttest.OK(t, err)
	var b buckets
	musttest.OK(t, json.Unmarshal(raw, &b))
	if len(b.Ranges) == 0 || len(b.Messages) == 0 {
		t.Fatal("no vectors")
	}
	return b
}

// sizes reads "200x5", "200" or "".
func sizes(t *testing.T, s string) []int {
	t.Helper()
	if s == "" {
		return nil
	}
	one, times, many := strings.Cut(s, "x")
	n, err := strconv.Atoi(one)
	musttest.OK(t, err)
	k := 1
	if many {
		if k, err = strconv.Atoi(times); err != nil {
			t.Fatal(err)
		}
	}
	return slices.Repeat([]int{n}, k)
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t).Ranges {
		var everybody []user.ID
		for id := user.ID(1); id <= v.MaxUserID; id++ {
			everybody = append(everybody, id)
		}
		var got [][2]user.ID
		for _, r := range Ranges(everybody, v.Size) {
			got = append(got, [2]user.ID{r[0], r[len(r)-1]})
		}
		if !slices.Equal(got, v.Ranges) {
			t.Errorf("1…%d by %d: %v, want %v", v.MaxUserID, v.Size, got, v.Ranges)
		}
	}
	for _, v := range vectors(t).Messages {
		got, err := Pack(sizes(t, v.Bytes), v.LimitBytes, v.MaxRanges)
		if err != nil || !slices.Equal(got, v.Counts) {
			t.Errorf("%q at most %d: %v %v, want %v", v.Bytes, v.MaxRanges, got, err, v.Counts)
		}
	}
	if _, err := Pack([]int{5, 819201}, 819200, 100); !errors.Is(err, ErrRangeTooLarge) {
		t.Errorf("a range above the limit: %v", err)
	}
}

// TestPackLosesNothing: for all sizes, each range is packed once, in order, and within both
// limits. No two neighbouring messages would fit into one.
func TestPackLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, most := rapid.IntRange(1, 1000).Draw(t, "limit"), rapid.IntRange(1, 20).Draw(t, "most")
		in := rapid.SliceOf(rapid.IntRange(0, limit)).Draw(t, "sizes")
		counts, err := Pack(in, limit, most)
		musttest.OK(t, err)
		at := 0
		for i, n := range counts {
			sum := 0
			for _, size := range in[at : at+n] {
				sum += size
			}
			if n == 0 || n > most || sum > limit {
				t.Fatalf("message %d has %d ranges and %d bytes", i, n, sum)
			}
			if at += n; at < len(in) && n < most && sum+in[at] <= limit {
				t.Fatalf("message %d ends too early", i)
			}
		}
		if at != len(in) {
			t.Fatalf("%d of %d ranges were packed", at, len(in))
		}
	})
}

// TestMessagesHoldEverybodyOnce packs sparse users whose sets are large, so that both limits
// apply.
func TestMessagesHoldEverybodyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 600).Draw(t, "ranges")
		perUser := rapid.IntRange(1, 40).Draw(t, "bytes per user")
		var all []user.ID
		id := user.ID(0)
		for range n * 10 {
			id += user.ID(rapid.IntRange(1, 1<<40).Draw(t, "gap"))
			all = append(all, id)
		}
		users := Ranges(all, 10)
		ms, err := messages(3, users, func(ids []user.ID) ([]byte, error) { return make([]byte, len(ids)*perUser*10), nil })
		musttest.OK(t, err)
		at := 0
		for i, m := range ms {
			bytes := 0
			for _, one := range m.Ranges {
				bytes += len(one.Set)
			}
			if m.Seq != 3+i || bytes > MaxMessageBytes || len(m.Ranges) > MaxMessageRanges {
				t.Fatalf("message %d: seq %d, %d bytes, %d ranges", i, m.Seq, bytes, len(m.Ranges))
			}
			sum := 0
			for _, one := range m.Ranges {
				if one.From != users[at][0] || one.To != users[at][len(users[at])-1] || one.Users != len(users[at]) {
					t.Fatalf("range %d is %d…%d", at, one.From, one.To)
				}
				sum += one.Users
				at++
			}
			if sum != m.Users || m.From != m.Ranges[0].From || m.To != m.Ranges[len(m.Ranges)-1].To {
				t.Fatalf("message %d says %d users from %d to %d", i, m.Users, m.From, m.To)
			}
		}
		if at != len(users) {
			t.Fatalf("%d of %d ranges are in messages", at, len(users))
		}
	})
}

func TestARangeThatFitsNowhereIsNeverSent(t *testing.T) {
	_, err := messages(0, Ranges([]user.ID{1, 2}, delivery.BatchSize), func([]user.ID) ([]byte, error) { return make([]byte, MaxMessageBytes+1), nil })
	if !errors.Is(err, ErrRangeTooLarge) {
		t.Fatalf("sent: %v", err)
	}
}
