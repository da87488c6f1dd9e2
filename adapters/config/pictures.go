package config

import (
	"errors"
	"net/url"
	"regexp"
)

// Pictures says where the files of pictures are kept. Without Endpoint the database keeps them.
type Pictures struct {
	Endpoint, Bucket, Region, KeyID, Secret string
}

// bucket matches the names of buckets that every store takes.
var bucket = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func pictureVariables() []Variable {
	field := func(f func(*Pictures) *string) reader {
		return func(c *Config, v string) error {
			*f(&c.Pictures) = v
			return nil
		}
	}
	return []Variable{
		{"PICTURES_S3_ENDPOINT", "", "pictures of messages: the address of a store that speaks the protocol of Amazon S3, such as https://s3.eu-central-1.amazonaws.com; empty = the database keeps them", pictureEndpoint},
		{"PICTURES_S3_BUCKET", "", "pictures of messages: the bucket, which must exist and need not be public; web reads it for everybody", func(c *Config, v string) error {
			c.Pictures.Bucket = v
			if v != "" && !bucket.MatchString(v) {
				return errors.New("must be the name of a bucket: 3 to 63 small letters, digits, dots and hyphens")
			}
			return nil
		}},
		{"PICTURES_S3_REGION", "", "pictures of messages: the region of the bucket, such as eu-central-1; empty = us-east-1, or none", field(func(p *Pictures) *string { return &p.Region })},
		{"PICTURES_S3_KEY_ID", "", "pictures of messages: the id of the access key, which may put, get and delete objects of the bucket", field(func(p *Pictures) *string { return &p.KeyID })},
		{"PICTURES_S3_SECRET", "", "pictures of messages: the secret of the access key", field(func(p *Pictures) *string { return &p.Secret })},
	}
}

func pictureEndpoint(c *Config, v string) error {
	c.Pictures.Endpoint = v
	if v == "" {
		return nil
	}
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must be an http or https address of a host alone, such as https://s3.eu-central-1.amazonaws.com")
	}
	return nil
}
