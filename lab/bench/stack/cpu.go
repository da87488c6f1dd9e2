package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/localstack/child"
)

// ticksPerSecond is the unit of /proc on every Linux there is.
const ticksPerSecond = 100

// CPU returns the processor time the program has used so far.
func (p *Process) CPU() (time.Duration, error) { return CPUOf(p.child.PID()) }

// PostgresCPU returns the processor time that the server's processes have used so far, including
// ended processes.
func (s *Stack) PostgresCPU(ctx context.Context) (time.Duration, error) {
	var line string
	err := s.SQL.QueryRow(ctx, `select split_part(pg_read_file('postmaster.pid'), chr(10), 1)`).Scan(&line)
	if err != nil {
		return 0, err
	}
	first, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0, err
	}
	own, waited, err := cpuOf(first)
	sum := own + waited
	for _, pid := range child.Children(first) {
		if own, waited, err := cpuOf(pid); err == nil { // else it has just ended
			sum += own + waited
		}
	}
	return sum, err
}

// UsedWhile returns the processor time that PostgreSQL, Redis and the program use while do runs.
// Without a program it is this process, which reads what the database sends.
func (s *Stack) UsedWhile(ctx context.Context, p *Process, do func() error) (time.Duration, error) {
	used := func() (time.Duration, error) {
		own, err1 := CPUOf(os.Getpid())
		if p != nil {
			own, err1 = p.CPU()
		}
		postgres, err2 := s.PostgresCPU(ctx)
		redis, err3 := s.RedisCPU(ctx)
		return own + postgres + redis, errors.Join(err1, err2, err3)
	}
	before, err := used()
	if err == nil {
		err = do()
	}
	if err != nil {
		return 0, err
	}
	after, err := used()
	return after - before, err
}

// RedisCPU returns the processor time that the server has used so far.
func (s *Stack) RedisCPU(ctx context.Context) (time.Duration, error) {
	client, err := s.RedisClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); ok {
			pid, err := strconv.Atoi(id)
			if err != nil {
				return 0, err
			}
			return CPUOf(pid)
		}
	}
	return 0, errors.New("redis does not tell its process")
}

// CPUOf returns the processor time that a process has used so far.
func CPUOf(pid int) (time.Duration, error) {
	own, _, err := cpuOf(pid)
	return own, err
}

// cpuOf returns the processor time of the process itself and of its ended children.
func cpuOf(pid int) (own, ended time.Duration, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The second field, a name in brackets, may hold anything.
	fields := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+1:])
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks [4]int64 // user, system, and both of children
	for i := range ticks {
		if ticks[i], err = strconv.ParseInt(fields[11+i], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/stat cannot be read: %w", pid, err)
		}
	}
	const tick = time.Second / ticksPerSecond
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick, nil
}
