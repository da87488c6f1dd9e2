// Package systemd_test holds the units of systemd to the handbook and to systemd.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dropbell/musttest"
)

// programs are the units, by the program that each runs.
var programs = []string{"web", "worker"}

// unit returns the settings of a unit: section, dot and name to the values in their order. A line
// that is no setting, and a setting outside of a section, are errors.
func unit(t *testing.T, program string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile("dropbell-" + program + ".service")
	musttest.OK(t, err)
	settings, section := map[string][]string{}, ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		switch name, value, is := strings.Cut(line, "="); {
		case line == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
		case !is || section == "" || strings.TrimSpace(name) != name:
			t.Errorf("%s: %q is no setting", program, line)
		default:
			settings[section+"."+name] = append(settings[section+"."+name], value)
		}
	}
	return settings
}

// hardening are the settings that both units have, so that a program that was taken over can read
// and change nothing but its stores.
var hardening = map[string]string{"DynamicUser": "yes", "UMask": "0077", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "AmbientCapabilities": "", "PrivateTmp": "yes",
	"PrivateDevices": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "ProtectProc": "invisible", "ProtectClock": "yes", "ProtectHostname": "yes", "ProtectKernelLogs": "yes",
	"ProtectKernelModules": "yes", "ProtectKernelTunables": "yes", "ProtectControlGroups": "yes", "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "RestrictNamespaces": "yes",
	"RestrictRealtime": "yes", "RestrictSUIDSGID": "yes", "RemoveIPC": "yes", "LockPersonality": "yes", "MemoryDenyWriteExecute": "yes", "SystemCallArchitectures": "native",
	"SystemCallErrorNumber": "EPERM"}

func TestUnits(t *testing.T) {
	for _, program := range programs {
		got := unit(t, program)
		want := map[string][]string{
			"Unit.Description": {"Dropbell " + program}, "Unit.Documentation": {"file:/usr/share/doc/dropbell/operations.md"}, "Unit.Wants": {"network-online.target"},
			"Unit.After": {"network-online.target postgresql.service redis-server.service"}, "Install.WantedBy": {"multi-user.target"},
			"Service.Type": {"exec"}, "Service.ExecStart": {"/usr/local/bin/dropbell " + program}, "Service.EnvironmentFile": {"/etc/dropbell/dropbell.env", "-/etc/dropbell/" + program + ".env"},
			"Service.Restart": {"always"}, "Service.RestartSec": {"1"}, "Service.RestartPreventExitStatus": {"2"},
			"Service.TimeoutStopSec":   {map[string]string{"web": "40", "worker": "30"}[program]},
			"Service.LimitNOFILE":      {map[string]string{"web": "1048576", "worker": "65536"}[program]},
			"Service.SystemCallFilter": {"@system-service", "~@privileged"},
		}
		for name, value := range hardening {
			want["Service."+name] = []string{value}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", program, d)
		}
	}
}

// TestSystemdKnowsTheUnits: systemd finds nothing to complain of. The programs that the units name
// need not be installed for that.
func TestSystemdKnowsTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT CHECKED by systemd: this machine has no systemd-analyze; TestUnits compares every setting")
	}
	self, err := os.Executable()
	musttest.OK(t, err)
	args := []string{"verify", "--man=no", "--recursive-errors=no"}
	for _, program := range programs {
		raw, err := os.ReadFile("dropbell-" + program + ".service")
		musttest.OK(t, err)
		file := filepath.Join(t.TempDir(), "dropbell-"+program+".service")
		musttest.OK(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), "/usr/local/bin/dropbell", self)), 0o644))
		args = append(args, file)
	}
	out, err := exec.Command(analyze, args...).CombinedOutput()
	if complaints := slices.DeleteFunc(strings.Split(string(out), "\n"), func(l string) bool { return !strings.Contains(l, "dropbell-") }); err != nil || len(complaints) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
