package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"dropbell/musttest"
)

func TestUp(t *testing.T) {
	c := newCheckout(t)
	up := filepath.Join(c.dir, binary("up"))

	s := c.start(t, up, "-past=false")
	url := s.find(t, `Console +(http://\S+)`)
	first := c.recorded(t, url)
	checkSeed(t, first.Users, len(first.Templates), first.Reserved)
	if said := s.said(); !strings.Contains(said, "a warning for the terminal") || strings.Contains(said, "nothing for the terminal") {
		t.Error("the terminal shows the wrong lines of the log")
	}
	if info, err := os.Stat(filepath.Join(c.dir, local, "secrets.env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secrets: %v %v", info, err)
	}
	if pages := get(s.find(t, `Demo shop +(http://\S+)`)); !strings.Contains(pages, url+"/components/v1.js") {
		t.Errorf("the demo shop: %.200s", pages)
	}
	c.checkSecond(t, up)
	c.checkRevival(t, s, url)
	pids := append(c.servers(t), s.cmd.Process.Pid)
	musttest.OK(t, s.cmd.Process.Signal(syscall.SIGINT))
	<-s.end
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d after Ctrl-C", code)
	}
	mustEnd(t, pids)
	if _, err := os.Stat(filepath.Join(c.dir, "worker-stopped")); err != nil {
		t.Error("the worker was not asked to stop")
	}

	// The second start keeps the data and the keys, and uses the existing drop. A shell runs the
	// second start and is then killed.
	s = c.start(t, "sh", "-c", up+"; true")
	again := c.recorded(t, s.find(t, `Console +(http://\S+)`))
	if len(again.Templates) != len(first.Templates) || len(again.Keys) != len(first.Keys) {
		t.Errorf("the second start made %d templates with %d keys", len(again.Templates), len(again.Keys))
	}
	pids = append(c.servers(t), c.upPID(t))
	musttest.OK(t, s.cmd.Process.Kill())
	mustEnd(t, pids)

	s = c.start(t, up)
	pids = append(c.servers(t), s.cmd.Process.Pid)
	musttest.OK(t, s.cmd.Process.Kill())
	mustEnd(t, pids)
}

func (c checkout) upPID(t *testing.T) int {
	t.Helper()
	state, err := readEnv(filepath.Join(c.dir, stateFile()))
	musttest.OK(t, err)
	pid, err := strconv.Atoi(state["PID"])
	musttest.OK(t, err)
	return pid
}

func checkSeed(t *testing.T, users, templates int, reserved map[string]int) {
	t.Helper()
	if users != 5000 || templates != 4 {
		t.Errorf("%d users, %d templates", users, templates)
	}
	perTemplate := map[string]int{}
	for key := range reserved {
		template, user, _ := strings.Cut(key, " ")
		perTemplate[template]++
		if template == "1" && user == "1001" {
			t.Error("the user who is for trying out has reserved already")
		}
	}
	if perTemplate["1"] != 3000 || perTemplate["2"] != 4000 || perTemplate["3"] != 1500 || perTemplate["4"] != 0 {
		t.Errorf("users by template: %v", perTemplate)
	}
}

// checkSecond starts a second up while the first up runs.
func (c checkout) checkSecond(t *testing.T, up string) {
	t.Helper()
	cmd := exec.Command(up)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "DATABASE_URL=", "REDIS_URL=")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "in use") {
		t.Errorf("a second one in the same checkout: %v\n%s", err, out)
	}
}

// checkRevival kills web, Redis and PostgreSQL, one after another.
func (c checkout) checkRevival(t *testing.T, s *terminal, url string) {
	t.Helper()
	old := get(url + "/pid")
	musttest.OK(t, syscall.Kill(c.pid(t, "web.pid"), syscall.SIGKILL))
	eventually(t, "web is back", func() bool { now := get(url + "/pid"); return now != "" && now != old })
	for _, server := range []struct{ name, pidFile string }{{"Redis", "redis/redis.pid"}, {"PostgreSQL", "postgres/postmaster.pid"}} {
		addr := s.find(t, server.name+` listens on (\S+)`)
		pid := c.pid(t, server.pidFile)
		musttest.OK(t, syscall.Kill(pid, syscall.SIGKILL))
		mustEnd(t, []int{pid})
		eventually(t, server.name+" is back", func() bool {
			raw, err := os.ReadFile(filepath.Join(c.dir, local, server.pidFile))
			if err != nil || strings.HasPrefix(string(raw), strconv.Itoa(pid)) {
				return false
			}
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
}
