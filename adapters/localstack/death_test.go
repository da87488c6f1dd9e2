package localstack

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dropbell/adapters/localstack/child"
	"dropbell/musttest"
)

// These variables start the helper process of the two tests below. The helper starts servers and
// waits to be killed.
const (
	helperVariable = "LOCALSTACK_TEST_HELPER"
	helperDir      = "LOCALSTACK_TEST_DIR"
)

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		os.Exit(helper())
	}
	os.Exit(m.Run())
}

func helper() int {
	ctx := context.Background()
	o := Options{Dir: os.Getenv(helperDir), Log: os.Stderr}
	p, err := StartPostgres(ctx, o)
	if err != nil {
		println(err.Error())
		return 1
	}
	r, err := StartRedis(ctx, o)
	if err != nil {
		println(err.Error())
		return 1
	}
	os.Stdout.WriteString(strings.Join([]string{
		"ready", strconv.Itoa(p.process.PID()), strconv.Itoa(r.process.PID()), filepath.Dir(p.home.data), p.URL(),
	}, " ") + "\n")
	<-make(chan struct{})
	return 0
}

// startHelper returns when the helper has said "ready …"; fields are its words.
func startHelper(t *testing.T, dir string, who *account) (cmd *exec.Cmd, fields []string) {
	t.Helper()
	binary, err := os.Executable()
	musttest.OK(t, err)
	// Copied, because another account may not enter where it was built.
	program := filepath.Join(openDir(t), "helper")
	musttest.OK(t, run(exec.Command("cp", binary, program)))
	cmd = who.command(t.Context(), []string{helperVariable + "=1", helperDir + "=" + dir, "HOME=" + filepath.Dir(program)}, program)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.StdoutPipe()
	musttest.OK(t, err)
	musttest.OK(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	buf := make([]byte, 4096)
	n, _ := out.Read(buf) // nothing read is told below
	fields = strings.Fields(string(buf[:n]))
	if len(fields) != 5 || fields[0] != "ready" {
		t.Fatalf("helper said %q: %s", buf[:n], failed.String())
	}
	return cmd, fields
}

func TestKilledParentLeavesNoServer(t *testing.T) {
	for name, dir := range map[string]string{"temporary": "", "kept": openDir(t)} {
		t.Run(name, func(t *testing.T) {
			cmd, fields := startHelper(t, dir, nil)
			postgres, _ := strconv.Atoi(fields[1])
			redis, _ := strconv.Atoi(fields[2])
			if !child.Alive(postgres) || !child.Alive(redis) {
				t.Fatal("the helper's servers do not run")
			}
			musttest.OK(t, cmd.Process.Signal(syscall.SIGKILL))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := child.Gone(ctx, postgres, redis); err != nil {
				t.Error(err)
			}
			if dir == "" {
				waitRemoved(t, fields[3])
				return
			}
			// Files left behind must not be in the way of the next start.
			p := startPostgres(t, Options{Dir: dir})
			query[int32](t, p.URL(), "select 1")
		})
	}
}

func waitRemoved(t *testing.T, dir string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s is still there", dir)
		case <-tick.C:
		}
	}
}

func TestWithoutRoot(t *testing.T) {
	dir := openDir(t)
	who, err := serverAccount(dir)
	musttest.OK(t, err)
	if who == nil {
		p := startPostgres(t, Options{Dir: dir}) // this process is not root itself
		query[int32](t, p.URL(), "select 1")
		return
	}
	musttest.OK(t, os.Chown(dir, who.uid, who.gid))
	_, fields := startHelper(t, dir, who)
	if got := query[string](t, fields[4], "select current_user::text"); got != "dropbell" {
		t.Errorf("user %q", got)
	}
	if uid, _, _ := owner(filepath.Join(dir, "postgres")); uid != who.uid {
		t.Errorf("data belongs to %d, expected %d", uid, who.uid)
	}
}
