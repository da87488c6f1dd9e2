package work_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
)

// TestProcesses: a process counts as a process of its program from its entry until it leaves, or
// has been silent for half a minute.
func TestProcesses(t *testing.T) {
	w := pgtest.New(t)
	store := workdb.NewProcesses(w.DB)
	process := func(program string, channels ...delivery.Channel) workdb.Process {
		return workdb.Process{ID: uuid.New(), Program: program, Channels: delivery.ChannelSetOf(channels...)}
	}
	a, b, c := process("worker", delivery.SMS), process("worker", delivery.SMS, delivery.Email), process("worker")
	for _, p := range []workdb.Process{a, b, c, process("web"), b} {
		w.Must(store.Enter(t.Context(), p))
	}
	others := func(of workdb.Process, want ...delivery.ChannelSet) {
		t.Helper()
		got, err := store.Others(t.Context(), of)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("others %v, want %v: %v", got, want, err)
		}
	}
	others(a, 0, b.Channels)
	others(process("worker"), 0, a.Channels, b.Channels)
	w.Must(store.Leave(t.Context(), c))
	w.Exec(`update processes set seen_at = seen_at - interval '31 seconds' where id = $1`, b.ID)
	others(a)
	w.Must(store.Enter(t.Context(), b))
	others(a, b.Channels)
	w.Exec(`update processes set seen_at = seen_at - interval '61 minutes'`)
	w.Must(store.Enter(t.Context(), a))
	if n := w.Number(`select count(*) from processes`); n != 1 {
		t.Errorf("%d rows are left", n)
	}
}
