package config

import (
	"errors"
	"net/url"
	"regexp"
)

// An ObjectStore is a bucket of a store that speaks the protocol of Amazon S3. Without Endpoint there
// is none.
type ObjectStore struct {
	Endpoint, Bucket, Region, KeyID, Secret string
}

// bucket matches the names of buckets that every store takes.
var bucket = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// storeVariables are the variables of an object store. about says what it is for, and without what
// is so without it; bucket and key say what is asked of these.
func storeVariables(prefix, about, without, bucketMust, keyMay string, store func(*Config) *ObjectStore) []Variable {
	field := func(f func(*ObjectStore) *string) reader {
		return func(c *Config, v string) error {
			*f(store(c)) = v
			return nil
		}
	}
	return []Variable{
		{prefix + "ENDPOINT", "", about + ": the address of a store that speaks the protocol of Amazon S3, such as https://s3.eu-central-1.amazonaws.com; empty = " + without, func(c *Config, v string) error {
			store(c).Endpoint = v
			return storeAddress(v)
		}},
		{prefix + "BUCKET", "", about + ": the bucket, which must exist and " + bucketMust, func(c *Config, v string) error {
			store(c).Bucket = v
			if v != "" && !bucket.MatchString(v) {
				return errors.New("must be the name of a bucket: 3 to 63 small letters, digits, dots and hyphens")
			}
			return nil
		}},
		{prefix + "REGION", "", about + ": the region of the bucket, such as eu-central-1; empty = us-east-1, or none", field(func(s *ObjectStore) *string { return &s.Region })},
		{prefix + "KEY_ID", "", about + ": the id of the access key, which may " + keyMay, field(func(s *ObjectStore) *string { return &s.KeyID })},
		{prefix + "SECRET", "", about + ": the secret of the access key", field(func(s *ObjectStore) *string { return &s.Secret })},
	}
}

func pictureVariables() []Variable {
	return storeVariables("PICTURES_S3_", "pictures of messages", "the database keeps them", "need not be public; web reads it for everybody", "put, get and delete objects of the bucket",
		func(c *Config) *ObjectStore { return &c.Pictures })
}

func exportVariables() []Variable {
	return storeVariables("EXPORTS_S3_", "exports of drops that are over", "nothing is exported", "must not be public", "put objects into the bucket",
		func(c *Config) *ObjectStore { return &c.Exports })
}

// storeAddress refuses what is not the address of a host alone.
func storeAddress(v string) error {
	if v == "" {
		return nil
	}
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must be an http or https address of a host alone, such as https://s3.eu-central-1.amazonaws.com")
	}
	return nil
}
