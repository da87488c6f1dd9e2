package netrule_test

import (
	"net/netip"
	"testing"

	"dropbell/domain/netrule"
)

func TestPublic(t *testing.T) {
	for ip, want := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.1.2.3": false, "::1": false, "0.0.0.0": false, "0.1.2.3": false, "::": false,
		"10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "fd00::1": false, "fd00:ec2::254": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "100.100.100.200": false, "192.0.0.192": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false,
		"::127.0.0.1": false, "::7f00:1": false, "::ffff:0:127.0.0.1": false, "2001:0:7f00:1::": false, "5f00::1": false, "3fff::1": false,
		"64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "2001:4860:4860::8888": true, "2a00:1450:4001::1": true, "240e::1": true, "2002:7f00:1::": false, "fec0::1": false, "198.18.0.1": false,
	} {
		if got := netrule.Public(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %v, want %v", ip, got, want)
		}
	}
}

func TestDialled(t *testing.T) {
	for address, want := range map[string]error{"93.184.216.34:443": nil, "[2606:4700::1111]:443": nil, "127.0.0.1:443": netrule.ErrPrivate, "[::ffff:10.0.0.1]:80": netrule.ErrPrivate,
		"100.64.0.1:443": netrule.ErrPrivate, "198.18.0.1:443": netrule.ErrPrivate, "[64:ff9b::7f00:1]:443": netrule.ErrPrivate} {
		if err := netrule.Dialled(address); err != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := netrule.Dialled("name.example:443"); err == nil {
		t.Error("a name that was not resolved")
	}
}
