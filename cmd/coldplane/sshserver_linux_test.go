package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
)

// An sshServer runs commands on this machine for whoever has its key.
type sshServer struct{ config string }

// startSSH listens on loopback and writes a configuration for the system's ssh
// client in which every name leads there.
func startSSH(t *testing.T) *sshServer {
	t.Helper()
	dir := t.TempDir()
	key := func(file string) (ssh.Signer, ssh.PublicKey) {
		_, k, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ssh.NewSignerFromKey(k)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ssh.MarshalPrivateKey(k, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
		return s, s.PublicKey()
	}
	host, hostPub := key("host")
	_, user := key("user")
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if string(k.Marshal()) != string(user.Marshal()) {
			return nil, fmt.Errorf("not this key")
		}
		return nil, nil
	}}
	cfg.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveSSH(c, cfg)
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	known := filepath.Join(dir, "known_hosts")
	if err := os.WriteFile(known, []byte("* "+string(ssh.MarshalAuthorizedKey(hostPub))), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "config")
	text := fmt.Sprintf("Host *\n  HostName 127.0.0.1\n  Port %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n  LogLevel ERROR\n", port, filepath.Join(dir, "user"), known)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &sshServer{conf}
}

func serveSSH(c net.Conn, cfg *ssh.ServerConfig) {
	conn, chans, reqs, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(reqs)
	for nc := range chans {
		if nc.ChannelType() != "session" {
			_ = nc.Reject(ssh.UnknownChannelType, "")
			continue
		}
		ch, creqs, err := nc.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range creqs {
				if r.Type != "exec" {
					_ = r.Reply(r.Type == "env", nil)
					continue
				}
				var x struct{ Command string }
				_ = ssh.Unmarshal(r.Payload, &x)
				_ = r.Reply(true, nil)
				go runSSH(ch, x.Command)
			}
		}()
	}
}

func runSSH(ch ssh.Channel, command string) {
	defer ch.Close()
	c := exec.Command("/bin/sh", "-c", command)
	c.Stdout, c.Stderr = ch, ch.Stderr()
	in, err := c.StdinPipe()
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(in, ch)
		in.Close()
	}()
	code := uint32(0)
	if err := c.Run(); err != nil {
		code = 1
		if ee, ok := err.(*exec.ExitError); ok && ee.ExitCode() > 0 {
			code = uint32(ee.ExitCode())
		}
	}
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
}
