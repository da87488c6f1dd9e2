package scenario

import (
	"errors"
	"flag"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestFlags(t *testing.T) {
	f := Flags{flag.NewFlagSet("x", flag.ContinueOnError)}
	callers, sizes, lasting, runs := f.CallersInTurn("16,64"), f.Numbers("sizes", "", "sizes"), f.Lasting(5), f.Runs(3)
	if err := f.Parse([]string{"-sizes", "0,1000", "-seconds", "2"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(*callers, []int{16, 64}) || !slices.Equal(*sizes, []int{0, 1000}) || *lasting != 2*time.Second || *runs != 3 {
		t.Errorf("%v %v %v %d", *callers, *sizes, *lasting, *runs)
	}
	if callers.String() != "16,64" {
		t.Errorf("%s", callers)
	}
	for _, wrong := range []string{"1,x", "-1", "1,,2"} {
		if err := new(Numbers).Set(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// TestEach: each number is used once, and an error ends all callers.
func TestEach(t *testing.T) {
	var sum atomic.Int64
	if err := Each(100, 7, func(i int) error { sum.Add(int64(i)); return nil }); err != nil || sum.Load() != 4950 {
		t.Errorf("%d %v", sum.Load(), err)
	}
	wrong := errors.New("wrong")
	if err := Each(1_000_000_000, 7, func(i int) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
}

func TestDrive(t *testing.T) {
	w, err := Drive(3, 20*time.Millisecond, func(int64) error { return nil })
	if err != nil || w.Calls == 0 || w.PerSecond != float64(w.Calls)/0.02 || w.P99 < w.P50 {
		t.Errorf("%+v %v", w, err)
	}
	wrong := errors.New("wrong")
	if _, err := Drive(3, time.Minute, func(int64) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
	if _, err := Drive(3, 0, func(int64) error { return nil }); err == nil {
		t.Error("no call is no error")
	}
}
