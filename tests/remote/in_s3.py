"""Saves, exports, opens and reports at s3:// addresses of a server on this machine; every result is that of the local files."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable

os.environ |= {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE0",
    "AWS_SECRET_ACCESS_KEY": "secretEXAMPLE1",
    "AWS_DEFAULT_REGION": "us-east-1",
}

import boto3
from moto.server import ThreadedMotoServer

import cuptiprof
from cuptiprof.errors import ResultError
from cuptiprof.io.rank_folder import open_ranks


def command(*words: str, status: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", "cuptiprof", *words], capture_output=True, text=True, timeout=300)
    if done.returncode != status:
        raise SystemExit(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def refused(what: Callable[[], object]) -> str:
    try:
        what()
    except ResultError as e:
        return str(e)
    return ""


def main() -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it says every request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ["AWS_ENDPOINT_URL"] = f"http://{host}:{port}"
    bucket = boto3.resource("s3").create_bucket(Bucket="bucket")
    # A path or an address is all that differs.
    command("demo", "-o", "s3://bucket/job/run-%p.cuptiprof")
    (run,) = {key.key.split("/")[1] for key in bucket.objects.all()}
    address = f"s3://bucket/job/{run}"
    result = cuptiprof.open(address)
    result.save("here.cuptiprof")
    for view in ("summary", "regions"):
        local = command("report", "here.cuptiprof", "--view", view, "--csv")
        if command("report", address, "--view", view, "--csv") != local or not local:
            raise SystemExit(f"{view} of the run in S3 is another one")
    command("export", address, "-o", "s3://bucket/t.json.gz")
    command("export", "here.cuptiprof", "-o", "t.json.gz")
    bucket.download_file("t.json.gz", "theirs.json.gz")
    with open("t.json.gz", "rb") as ours, open("theirs.json.gz", "rb") as theirs:
        if ours.read() != theirs.read():
            raise SystemExit("the trace in S3 is another one")
    if len(open_ranks("s3://bucket/job")) != 1 or len(cuptiprof.open("s3://bucket/t.json.gz").kernels) != len(
        result.kernels
    ):
        raise SystemExit("what is in S3 does not open")
    # What is there stays, what is no run is not replaced, and nothing is left of trials.
    if "exists" not in command("export", address, "-o", "s3://bucket/t.json.gz", status=1):
        raise SystemExit("an object was replaced")
    result.save(address, overwrite=True)
    bucket.put_object(Key="notes/x.txt", Body=b"mine")
    for place, message in (
        ("s3://bucket/notes", "not a saved run"),
        ("s3://nobody/run", "cannot write s3://nobody/run"),
    ):
        try:
            result.save(place, overwrite=True)
        except ResultError as e:
            if message not in str(e) or "secretEXAMPLE1" in str(e):
                raise SystemExit(str(e)) from None
        else:
            raise SystemExit(f"{place} was written")
    if any(".cuptiprof-" in key.key for key in bucket.objects.all()):
        raise SystemExit("a trial was left")
    if "cannot write s3://nobody/run" not in command("demo", "-o", "s3://nobody/run", status=1):
        raise SystemExit("a bucket that is not there was not refused")
    if "no such run or trace" not in command("report", "s3://bucket/nothing", status=1):
        raise SystemExit("what is not there was opened")
    error = command("report", "s3://AKIAwrong99:hidden77@bucket/nothing", status=1)
    if "hidden77" in error or "AKIAwrong99" in error or "s3://***@bucket/nothing" not in error:
        raise SystemExit(error)
    # The folder of a job: each rank sends its own run, and what is asked is read there.
    for rank in range(2):
        result.metadata |= {"rank": rank, "distributed": {"rank": rank, "world_size": 3}}
        for folder in ("s3://bucket/ranks", "ranks"):
            os.makedirs("ranks", exist_ok=True)
            result.save_rank(folder)
    job = cuptiprof.open_job("s3://bucket/ranks")
    if job.ranks != [0, 1] or job.missing != [2] or len(job.rank(1).kernels) != len(result.kernels):
        raise SystemExit(f"{job}: {job.notes()}")
    for view in ("kernels", "gpus"):
        local = command("job", "ranks", "--view", view, "--csv")
        if command("job", "s3://bucket/ranks", "--view", view, "--csv") != local or not local:
            raise SystemExit(f"{view} of the job in S3 is another one")
    if "has a run of this rank" not in refused(lambda: result.save_rank("s3://bucket/ranks")):
        raise SystemExit("a rank's run was replaced")
    print(f"S3: {len(list(bucket.objects.all()))} objects, {len(result.kernels)} kernels")
    server.stop()


if __name__ == "__main__":
    main()
