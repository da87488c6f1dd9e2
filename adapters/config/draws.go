package config

import (
	"errors"
	"net/url"
	"strings"
)

// drawKey checks every one of the keys.
func drawKey(c *Config, v string) error {
	c.DrawKeys = v
	var keys []string
	return sealingKeys(&keys, v)
}

// drandURLs reads addresses of relays that are separated by commas.
func drandURLs(c *Config, v string) error {
	for one := range strings.SplitSeq(v, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		u, err := url.Parse(one)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return errors.New("must be http or https addresses, separated by commas")
		}
		c.DrandURLs = append(c.DrandURLs, one)
	}
	return nil
}
