package beacon_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudflare/circl/ecc/bls12381"

	"dropbell/adapters/beacon"
	"dropbell/adapters/localstack"
	"dropbell/domain/draw"
	"dropbell/musttest"
)

// Round 1000 of quicknet, as drand published it.
const (
	signature1000  = "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39"
	randomness1000 = "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd"
)

func TestRoundOfQuicknet(t *testing.T) {
	drand := draw.Source{Kind: draw.Drand, Detail: draw.QuicknetChain}
	got, err := drand.Randomness(beacon.Judge{}, 1000, signature1000)
	if err != nil || got.String() != randomness1000 {
		t.Errorf("round 1000 is %v, %v", got, err)
	}
	if _, err := drand.Randomness(beacon.Judge{}, 1001, signature1000); !errors.Is(err, draw.ErrSource) || !errors.Is(err, beacon.ErrSignature) {
		t.Errorf("the signature of round 1000 is judged as that of 1001: %v", err)
	}
	raw, _ := hex.DecodeString(signature1000)
	var point bls12381.G1
	musttest.OK(t, point.SetBytes(raw))
	for _, evidence := range []string{"", "zz", hex.EncodeToString(point.Bytes()), signature1000[2:], signature1000 + "00"} {
		if _, err := drand.Randomness(beacon.Judge{}, 1000, evidence); err == nil {
			t.Errorf("%q is a signature", evidence)
		}
	}
}

func TestLocalBeacon(t *testing.T) {
	local, err := beacon.NewLocal(bytes.Repeat([]byte("local"), 8))
	musttest.OK(t, err)
	source, err := draw.ParseSource("local " + local.Public())
	musttest.OK(t, err)
	evidence := hex.EncodeToString(local.Sign(5))
	if _, err := source.Randomness(beacon.Judge{}, 5, evidence); err != nil {
		t.Error(err)
	}
	if _, err := source.Randomness(beacon.Judge{}, 6, evidence); err == nil {
		t.Error("the signature of round 5 is accepted as that of round 6")
	}
	if err := (beacon.Judge{}).Verify(draw.QuicknetKey, 5, local.Sign(5)); !errors.Is(err, beacon.ErrSignature) {
		t.Errorf("the local beacon signs as drand: %v", err)
	}
	if _, err := beacon.NewLocal([]byte("short")); err == nil {
		t.Error("a short secret makes a beacon")
	}
}

// TestDrandClientAgrees: npm's drand-client, which shares no code with this package, judges a round of quicknet and a round of the local beacon
// alike, and refuses the signature of another round.
func TestDrandClientAgrees(t *testing.T) {
	dir := filepath.Join("testdata", "drand")
	modules := localstack.NPMPackages(t, dir) // skips where there is no Node.js
	local, err := beacon.NewLocal(bytes.Repeat([]byte("local"), 8))
	musttest.OK(t, err)
	home := t.TempDir()
	script, err := os.ReadFile(filepath.Join(dir, "verify.mjs"))
	musttest.OK(t, err)
	musttest.OK(t, os.WriteFile(filepath.Join(home, "verify.mjs"), script, 0o600))
	musttest.OK(t, os.Symlink(modules, filepath.Join(home, "node_modules")))
	args := []string{filepath.Join(home, "verify.mjs")}
	for key, sign := range map[string]func(int64) string{draw.QuicknetKey: func(int64) string { return signature1000 }, local.Public(): func(r int64) string { return hex.EncodeToString(local.Sign(r)) }} {
		args = append(args, fmt.Sprintf("%s:1000:%s", key, sign(1000)), fmt.Sprintf("%s:1001:%s", key, sign(1000)))
	}
	out, err := exec.CommandContext(t.Context(), "node", args...).CombinedOutput()
	musttest.OK(t, err)
	said := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(said) != 4 || !strings.Contains(string(out), randomness1000) {
		t.Fatalf("%s", out)
	}
	for i, line := range said {
		if refused := strings.HasPrefix(line, "refused"); refused != (i%2 == 1) {
			t.Errorf("round %d: %s", 1000+i%2, line)
		}
	}
}
