package hook_test

import (
	"testing"

	"dropbell/domain/event/hook"
)

// TestAddressesOfEndpoints: an endpoint is on the internet, whatever form its host has.
func TestAddressesOfEndpoints(t *testing.T) {
	for address, want := range map[string]string{
		"https://shop.example.com/hooks": "", "https://shop.example.com:8443/": "", "https://8.8.8.8/": "", "https://[2606:4700::1111]/": "", "https://7eleven.example.co.1up/": "",
		"https://localhost/": "rule.hook_private", "https://LOCALHOST./": "rule.hook_private", "https://a.localhost/": "rule.hook_private", "https://127.0.0.1/": "rule.hook_private",
		"https://169.254.169.254/latest/meta-data/": "rule.hook_private", "https://[::1]/": "rule.hook_private", "https://[::ffff:169.254.169.254]/": "rule.hook_private",
		"https://[::127.0.0.1]/": "rule.hook_private", "https://[64:ff9b::a9fe:a9fe]/": "rule.hook_private", "https://[fe80::1%25eth0]/": "rule.hook_private",
		"https://2130706433/": "rule.hook_private", "https://0x7f000001/": "rule.hook_private", "https://0x7f.1/": "rule.hook_private", "https://127.1/": "rule.hook_private", "https://0177.0.0.1/": "rule.hook_private",
		"https://redis:6379/": "rule.hook_private", "https://metadata.google.internal/": "rule.hook_private", "https://printer.local/": "rule.hook_private",
		"https://127.0.0.１/": "rule.hook_private", "https://１２７。０．０｡１/": "rule.hook_private", "https://127.0.0.¹/": "rule.hook_private", "https://０ｘ7f000001/": "rule.hook_private",
		"https://ＬＯＣＡＬＨＯＳＴ/": "rule.hook_private", "https://nas.home.arpa/": "rule.hook_private", "https://home.arpa./": "rule.hook_private",
		"https://商店.example.com/": "", "https://shop1。example．com/": "", "https://home.arpa.example/": "", "HTTPS://Shop.Example.Com/": "",
		"http://shop.example.com/": "rule.hook_url", "https://u:p@shop.example.com/": "rule.hook_user", "gopher://shop.example.com/": "rule.hook_url",
	} {
		if key, text := hook.CheckURL(address, false); key != want || (key == "") != (text == "") {
			t.Errorf("%s: %q (%s), want %q", address, key, text, want)
		}
	}
	if key, _ := hook.CheckURL("http://127.0.0.1:3000/hooks", true); key != "" {
		t.Errorf("in development: %s", key)
	}
}
